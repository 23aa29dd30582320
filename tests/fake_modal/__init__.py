"""A Modal of our own for tests: its control plane, its blobs, and faults on demand.

`python -m tests.fake_modal --state DIR` runs it as a process of its own; `server.FakeModal` starts
and steers that process. The protocol is that of modal 1.6.4, from its published proto only.
"""
