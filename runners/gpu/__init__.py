"""What runs beside the GPU: standard library only, no Django, works under `python -S`."""
