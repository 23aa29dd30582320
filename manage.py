#!/usr/bin/env python3
"""Django's command line for this project."""

from __future__ import annotations

import os
import sys

from django.core.management import execute_from_command_line


def main() -> None:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "kernelbot_site.settings")
    execute_from_command_line(sys.argv)


if __name__ == "__main__":
    main()
