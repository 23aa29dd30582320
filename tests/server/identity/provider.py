"""A provider of sign-ins over real HTTP, which keeps the rules of OAuth, or breaks one as told."""

from __future__ import annotations

import base64
import hashlib
import json
import secrets
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlencode, urlsplit

CLIENT_ID = "client-7"
SECRET = "MARK-SECRET-client"
TOKEN = "MARK-SECRET-token"


class Provider:
    """Speaks as Discord and as GitHub at once. `token` and `profile` break that endpoint:

    each is None, or (status, content type, body), or a number of seconds to wait, or an event to
    wait for.
    """

    def __init__(self):
        self.behave()
        self.person = {"id": 4242, "login": "ada", "username": "ada"}
        self.codes = {}
        self.asked = []
        provider = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self):
                length = int(self.headers["Content-Length"])
                provider._answer_token(self, parse_qs(self.rfile.read(length).decode()))

            def do_GET(self):
                provider._answer_profile(self)

            def log_message(self, *args):
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def close(self):
        self._server.shutdown()
        self._server.server_close()

    def behave(self):
        self.token = self.profile = None

    @property
    def settings(self):
        """What points a service at this provider."""
        return {
            "DISCORD_CLIENT_ID": CLIENT_ID,
            "DISCORD_CLIENT_SECRET": SECRET + "\n",
            "DISCORD_URL": self.url,
            "GITHUB_CLIENT_ID": CLIENT_ID,
            "GITHUB_CLIENT_SECRET": SECRET,
            "GITHUB_URL": self.url,
            "GITHUB_API_URL": self.url,
            "OAUTHLIB_INSECURE_TRANSPORT": "1",
        }

    def consent(self, address):
        """What a person's browser does at the authorization address: the query of the way back."""
        asked = {name: values[0] for name, values in parse_qs(urlsplit(address).query).items()}
        assert asked["client_id"] == CLIENT_ID
        assert asked["response_type"] == "code"
        assert asked["code_challenge_method"] == "S256"
        code = f"MARK-SECRET-code-{secrets.token_hex(4)}"
        self.codes[code] = asked
        return asked["redirect_uri"], {"code": code, "state": asked["state"]}

    def _answer_token(self, handler, form):
        self.asked.append(form)
        if self._misbehave(handler, self.token):
            return
        asked = self.codes.pop(form["code"][0], None)
        verifier = form["code_verifier"][0]
        digest = hashlib.sha256(verifier.encode()).digest()
        challenge = base64.urlsafe_b64encode(digest).decode().rstrip("=")
        right = (
            asked is not None
            and asked["code_challenge"] == challenge
            and form["redirect_uri"] == [asked["redirect_uri"]]
            and form["client_secret"] == [SECRET]
            and form["grant_type"] == ["authorization_code"]
        )
        if right:
            send(handler, 200, "application/json", json.dumps(token_answer()))
        else:
            send(handler, 400, "application/json", '{"error": "invalid_grant"}')

    def _answer_profile(self, handler):
        if self._misbehave(handler, self.profile):
            return
        if handler.headers["Authorization"] != f"Bearer {TOKEN}":
            send(handler, 401, "application/json", '{"message": "Bad credentials"}')
            return
        send(handler, 200, "application/json", json.dumps(self.person))

    def _misbehave(self, handler, how):
        if how is None:
            return False
        if isinstance(how, (int, float)):
            time.sleep(how)
            return False
        if isinstance(how, threading.Event):
            how.wait(60)
            return False
        send(handler, *how)
        return True


def token_answer():
    return {"access_token": TOKEN, "token_type": "bearer", "scope": "identify"}


def token_form():
    return urlencode(token_answer())


def send(handler, status, content_type, body):
    handler.send_response(status)
    handler.send_header("Content-Type", content_type)
    handler.send_header("Content-Length", str(len(body.encode())))
    handler.end_headers()
    handler.wfile.write(body.encode())
