"""What a user runs: python -S client.py ADDRESS CLI_ID SUBMISSION FOLDER.

Standard library only, no environment, no PATH. Reads the stream as wire-contract.md, 6.3 and 6.5
say and extracts each capture below FOLDER; prints the messages, then the result's request id.
"""

from __future__ import annotations

import base64
import io
import json
import os
import sys
import urllib.request
import zipfile
from pathlib import Path

BOUNDARY = "popcorn-boundary"


def main() -> int:
    address, cli_id, submission, folder = sys.argv[1:]
    assert os.environ.get("PATH", "") == ""
    assert not [name for name in os.environ if name.startswith(("MODAL", "AWS"))]
    content = Path(submission).read_bytes()
    body = (
        f'--{BOUNDARY}\r\nContent-Disposition: form-data; name="file"; '
        f'filename="submission.py"\r\n\r\n'.encode()
        + content
        + f"\r\n--{BOUNDARY}--\r\n".encode()
    )
    request = urllib.request.Request(
        f"{address}/profile/rowsum_cpu/L4",
        data=body,
        headers={
            "X-Popcorn-Cli-Id": cli_id,
            "Content-Type": f"multipart/form-data; boundary={BOUNDARY}",
        },
    )
    with urllib.request.urlopen(request, timeout=300) as response:
        event, data = read(response)
    if event == "error":
        print(f"error: {data['detail']}")
        return 1
    for key, run in data["results"][0]["runs"].items():
        trace = base64.b64decode(run["profile"]["trace"], validate=True)
        zipfile.ZipFile(io.BytesIO(trace)).extractall(Path(folder) / key)
    print("request:", data["results"][0]["profile_metadata"]["request_id"])
    return 0


def read(response) -> tuple[str, dict]:
    event = ""
    for raw in response:
        line = raw.decode().rstrip("\n")
        if line.startswith("event:"):
            event = line.removeprefix("event:").strip()
        elif line.startswith("data:"):
            data = json.loads(line.removeprefix("data:"))
            if event in ("result", "error"):
                return event, data
            print("status:", data["message"], flush=True)
    raise EOFError("the stream ended without a result")


if __name__ == "__main__":
    sys.exit(main())
