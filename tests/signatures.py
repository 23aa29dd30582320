"""What a real S3 checks of a signed address, and the S3 server of the tests does not."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from urllib.parse import parse_qs, urlsplit

from botocore.auth import S3SigV4QueryAuth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials

from tests.object_store import AWS

SIGNED = "X-Amz-Signature"


def signature_in(url: str) -> str:
    return parse_qs(urlsplit(url).query)[SIGNED][0]


def aws_signature(url: str) -> str:
    """That which botocore's own signer computes for an address; what it says it is, is left out."""
    parts = urlsplit(url)
    query = parse_qs(parts.query)
    region = query["X-Amz-Credential"][0].split("/")[2]
    key = Credentials(AWS["AWS_ACCESS_KEY_ID"], AWS["AWS_SECRET_ACCESS_KEY"])
    fields = [each for each in parts.query.split("&") if not each.startswith(f"{SIGNED}=")]
    unsigned = parts._replace(query="&".join(fields)).geturl()
    request = AWSRequest("GET", unsigned, {"Host": parts.netloc})
    request.context["timestamp"] = query["X-Amz-Date"][0]
    auth = S3SigV4QueryAuth(key, "s3", region)
    return auth.signature(auth.string_to_sign(request, auth.canonical_request(request)), request)


def refusal(url: str) -> str | None:
    """Why S3 answers 403 to this signed address, None where it gives the file."""
    query = parse_qs(urlsplit(url).query)
    if signature_in(url) != aws_signature(url):
        return "SignatureDoesNotMatch"
    signed_at = datetime.strptime(query["X-Amz-Date"][0], "%Y%m%dT%H%M%SZ").replace(tzinfo=UTC)
    if datetime.now(UTC) > signed_at + timedelta(seconds=int(query["X-Amz-Expires"][0])):
        return "AccessDenied: Request has expired"
    return None
