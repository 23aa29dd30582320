"""The load: people who profile, submit, list, download, cancel and delete, each one thing at a time."""

from __future__ import annotations

import hashlib
import random
import threading
import time
from typing import Any

import httpx

from tests.faults.http import GaveUp, Http
from tests.faults.ledger import Accepted, Ledger
from tests.server.popcorn import Event, archives, form

BOARD = "rowsum_cpu/L4"
PROFILE = f"/profile/{BOARD}"
SUBMISSION = b"def custom_kernel(rows):\n    return [sum(row) for row in rows]\n"
FINAL = ("succeeded", "failed", "timed_out", "cancelled")
LISTS = (
    "/leaderboards",
    "/gpus/rowsum_cpu",
    "/runner_queue/L4",
    "/user/submissions?leaderboard=rowsum_cpu",
    "/api/profile-requests/?limit=20",
    f"/submissions/{BOARD}",
    f"/submission_count/{BOARD}",
)
POLL_EVERY_S = 1.0


class Client(threading.Thread):
    """Begins nothing new after `until`, and waits for what it began until `deadline`."""

    def __init__(
        self,
        person: str,
        client: httpx.Client,
        ledger: Ledger,
        rng: random.Random,
        *,
        until: float,
        deadline: float,
    ) -> None:
        super().__init__(name=person, daemon=True)
        self.person, self.ledger, self.rng, self.until = person, ledger, rng, until
        self.http = Http(client, ledger, deadline)
        self.mine: list[Accepted] = []

    def run(self) -> None:
        actions = {
            self.profile_by_stream: 8,
            self.profile_in_the_background: 4,
            self.submit: 4,
            self.submit_by_stream: 1,
            self.look: 6,
            self.download: 4,
            self.delete: 1,
        }
        with self.http.client:
            while time.monotonic() < self.until:
                (action,) = self.rng.choices(list(actions), list(actions.values()))
                try:
                    action()
                except GaveUp:
                    return
                except Exception as error:  # noqa: BLE001  a fault of the harness is no success
                    self.ledger.violate(f"{action.__name__} of a client failed: {error!r}")

    # --- Orders, which are never repeated: without an answer nobody knows whether they were taken ---

    def profile_by_stream(self) -> None:
        leave_early = self.rng.random() < 0.15
        item, last = self._open_stream("profile", PROFILE, "X-Profile-Request", leave_early)
        if item is None:
            return
        while last is None or last[1].get("code") in ("stream_limit", "result_unavailable"):
            last = self._take_up(item)
        self._finish_profile(item, last)

    def submit_by_stream(self) -> None:
        item, last = self._open_stream("test", f"/{BOARD}/test", "X-Submission", False)
        if item is None:
            return
        if last is None or last[1].get("code") in ("stream_limit", "result_unavailable"):
            self._poll(item)  # its stream cannot be taken up, docs/api.md says to read it here
        else:
            self.ledger.finish(item, "succeeded" if last[0] == "result" else "failed", str(last[1]))

    def profile_in_the_background(self) -> None:
        answer = self._order(
            "profile", PROFILE, headers={"Prefer": "respond-async"}, **self._form()
        )
        if answer is None:
            return
        item = self._accept("profile", answer.json()["id"])
        if self.rng.random() < 0.15:
            time.sleep(self.rng.uniform(0, 3))
            self.http.ask("POST", f"/api/profile-requests/{item.id}/cancel/")
        while (facts := self._facts(item))["status"] not in FINAL:
            time.sleep(POLL_EVERY_S)
        self.ledger.finish(item, facts["status"], str(facts.get("error")))

    def submit(self) -> None:
        mode = self.rng.choice(("test", "benchmark", "leaderboard"))
        answer = self._order(mode, f"/submission/{BOARD}/{mode}", **self._form(plain=True))
        if answer is None:
            return
        item = self._accept(mode, str(answer.json()["details"]["id"]))
        if self.rng.random() < 0.1:
            time.sleep(self.rng.uniform(0, 3))
            self._remove(item)
        else:
            self._poll(item)

    def _order(self, mode: str, path: str, **more: Any) -> httpx.Response | None:
        answer = self.http.try_once("POST", path, **more)
        if answer is None:
            self.ledger.order(mode, "not answered, or told to come back")
        elif answer.status_code != 202:
            self.ledger.violate(f"{answer.status_code} to a good order: {answer.text[:300]}")
            return None
        return answer

    def _open_stream(
        self, mode: str, path: str, header: str, leave_early: bool
    ) -> tuple[Accepted | None, Event | None]:
        plain, item = mode != "profile", None
        try:
            with self.http.client.stream("POST", path, **self._form(plain=plain)) as response:
                self.http.seen(response)
                if response.status_code == 200:
                    item = self._accept(mode, response.headers[header])
                    return item, self.http.read_to_the_end(response, leave_early=leave_early)
                self.ledger.order(mode, "not answered, or told to come back")
        except httpx.TransportError:
            if item is None:
                self.ledger.answer("POST", path, 0)
                self.ledger.order(mode, "not answered, or told to come back")
        return item, None

    def _form(self, *, plain: bool = False) -> dict[str, Any]:
        index = self.rng.choice((0, 1, 2, None))
        if plain or index is None:
            return form(SUBMISSION)
        return form(SUBMISSION, benchmark_index=index)

    # --- What became of them ---

    def _take_up(self, item: Accepted) -> Event | None:
        """docs/api.md: the events again, also after the end."""
        item.taken_up += 1
        path = f"/api/profile-requests/{item.id}/stream/"
        if time.monotonic() > self.http.deadline:
            self.ledger.violate(f"{path} gave no last event when all had recovered")
            raise GaveUp
        time.sleep(0.5)
        try:
            with self.http.client.stream("GET", path) as response:
                self.http.seen(response)
                if response.status_code == 200:
                    return self.http.read_to_the_end(response, leave_early=False)
                if response.status_code == 404:
                    self.ledger.violate(f"{path} is gone")
                    raise GaveUp
        except httpx.TransportError:
            self.ledger.answer("GET", path, 0)
        return None

    def _finish_profile(self, item: Accepted, last: Event) -> None:
        name, data = last
        if name == "result":
            item.archives = {
                key: hashlib.sha256(content).hexdigest() for key, content in archives(data).items()
            }
            self.ledger.finish(item, "succeeded")
        else:
            outcome = {409: "cancelled", 504: "timed_out"}.get(data["status_code"], "failed")
            self.ledger.finish(item, outcome, data["detail"])

    def _poll(self, item: Accepted) -> None:
        while True:
            answer = self.http.ask("GET", f"/user/submissions/{item.id}")
            if answer.status_code != 200:
                self.ledger.violate(f"submission {item.id} is not there: {answer.status_code}")
                raise GaveUp
            told = answer.json()
            if told["done"]:
                self.ledger.finish(item, told["job"]["status"], str(told["job"]["error"]))
                return
            self._require_patience(item)
            time.sleep(POLL_EVERY_S)

    def _facts(self, item: Accepted) -> dict[str, Any]:
        answer = self.http.ask("GET", f"/api/profile-requests/{item.id}/")
        if answer.status_code != 200:
            self.ledger.violate(f"profile {item.id} is not there: {answer.status_code}")
            raise GaveUp
        self._require_patience(item)
        facts: dict[str, Any] = answer.json()
        return facts

    def _require_patience(self, item: Accepted) -> None:
        if time.monotonic() > self.http.deadline:
            self.ledger.violate(f"{item.mode} {item.id} did not end when all had recovered")
            raise GaveUp

    # --- The rest of what people do ---

    def look(self) -> None:
        path = self.rng.choice(LISTS)
        answer = self.http.ask("GET", path)
        if answer.status_code != 200:
            self.ledger.violate(f"{answer.status_code} to {path}: {answer.text[:300]}")

    def download(self) -> None:
        ended = [
            each for each in self.mine if each.mode == "profile" and each.outcome == "succeeded"
        ]
        if not ended:
            return
        item = self.rng.choice(ended)
        for capture in self._facts(item)["captures"]:
            path = f"/api/profile-requests/{item.id}/captures/{capture['benchmark_index']}/archive/"
            answer = self.http.ask("GET", path)
            digest = hashlib.sha256(answer.content).hexdigest()
            if answer.status_code != 200 or answer.headers["ETag"].strip('"') != digest:
                self.ledger.violate(f"{path}: {answer.status_code}, not what its ETag says")
            item.archives.setdefault(f"profile.{capture['benchmark_index']}", digest)

    def delete(self) -> None:
        ended = [each for each in self.mine if each.mode != "profile" and each.outcome in FINAL]
        if ended:
            self._remove(self.rng.choice(ended))

    def _remove(self, item: Accepted) -> None:
        path = f"/user/submissions/{item.id}"
        answer = self.http.ask("DELETE", path)
        if answer.status_code not in (200, 404):
            self.ledger.violate(f"{answer.status_code} to DELETE {path}: {answer.text[:300]}")
        if self.http.ask("GET", path).status_code != 404:
            self.ledger.violate(f"{path} is still there after its deletion")
        self.ledger.finish(item, "deleted")

    def _accept(self, mode: str, made: str) -> Accepted:
        item = self.ledger.accept(Accepted(mode=mode, id=made, person=self.person))
        self.mine.append(item)
        return item
