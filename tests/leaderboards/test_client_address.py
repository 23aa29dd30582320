"""Whose address a request has, through every kind of proxy header: FR-33."""

from __future__ import annotations

import pytest
from django.test import RequestFactory

from leaderboards.api.client_address import TrustedProxies, address_key, client_address

PROXY = "10.0.0.9"
CLIENT = "203.0.113.7"


def address_of(peer, forwarded=None):
    meta = {"REMOTE_ADDR": peer}
    if forwarded is not None:
        meta["HTTP_X_FORWARDED_FOR"] = forwarded
    return client_address(RequestFactory().get("/", **meta))


@pytest.mark.parametrize("forwarded", [None, CLIENT, "127.0.0.1", "garbage"])
def test_fr_33_without_a_trusted_proxy_the_peer_is_the_client(settings, forwarded):
    settings.TRUSTED_PROXIES = TrustedProxies.read([])

    assert address_of("198.51.100.1", forwarded) == "198.51.100.1"


@pytest.mark.parametrize(
    ("forwarded", "found"),
    [
        (CLIENT, CLIENT),
        (f"1.2.3.4, {CLIENT}", CLIENT),
        (f"{CLIENT}, 10.0.0.8", CLIENT),
        (f"1.2.3.4,{CLIENT},10.0.0.8 , 10.1.2.3", CLIENT),
        ("10.0.0.1, 10.0.0.2", "10.0.0.1"),
        (f"{CLIENT}:4711", CLIENT),
        ("2001:db8::1", "2001:db8::1"),
        ("[2001:db8::1]:443", "2001:db8::1"),
        ("fe80::1%eth0", "fe80::1"),
        (f"::ffff:{CLIENT}", CLIENT),
        ("", PROXY),
        (", ,", PROXY),
        ("unknown", PROXY),
        ("_hidden", PROXY),
        (f"{CLIENT}, unknown", PROXY),
        (f"{CLIENT}, unknown, 10.0.0.8", PROXY),
        ("[", PROXY),
        ("1.2.3.4.5", PROXY),
        ("\N{ARABIC-INDIC DIGIT ONE}.2.3.4", PROXY),
        (", ".join(["203.0.113.9"] * 600), "203.0.113.9"),
    ],
)
def test_fr_33_behind_a_trusted_proxy_the_rightmost_foreign_hop_is_the_client(
    settings, forwarded, found
):
    settings.TRUSTED_PROXIES = TrustedProxies.read(["10.0.0.0/8"])

    assert address_of(PROXY, forwarded) == found


@pytest.mark.parametrize("peer", ["", "unix:", "testclient"])
def test_fr_33_a_unix_socket_has_no_address_unless_it_is_a_declared_proxy(settings, peer):
    settings.TRUSTED_PROXIES = TrustedProxies.read(["10.0.0.0/8"])
    assert address_of(peer, CLIENT) is None

    settings.TRUSTED_PROXIES = TrustedProxies.read(["unix"])
    assert address_of(peer, CLIENT) == CLIENT
    assert address_of("198.51.100.1", CLIENT) == "198.51.100.1"


def test_fr_33_ipv6_is_counted_by_prefix_and_ipv4_by_address():
    assert address_key("2001:db8:0:1::5") == address_key("2001:db8:0:1:ffff::9")
    assert address_key("2001:db8:0:1::5") != address_key("2001:db8:0:2::5")
    assert address_key("203.0.113.7") == "203.0.113.7"
    assert address_key(None) == "unknown"


@pytest.mark.parametrize("wrong", ["10.0.0.1/8", "proxy.example", "10.0.0.0/40", "UNIX "])
def test_fr_33_a_wrong_list_of_proxies_is_named_at_the_start(wrong):
    with pytest.raises(ValueError, match="TRUSTED_PROXIES: "):
        TrustedProxies.read(["127.0.0.1", wrong])
