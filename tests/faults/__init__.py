"""Everything at once, with faults: `python -m tests.faults --seconds 600 --seed 7`; docs/faults.md."""
