"""manage.py modal_status: what is deployed at Modal, and what is wrong with it."""

from __future__ import annotations

import asyncio
from typing import Any

import modal.exception
from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from runners.backends import modal_faults
from runners.backends.modal_client import ModalClient
from runners.backends.modal_preflight import find_problems
from runners.exceptions import RunnerFault
from runners.gpu.build import build_id
from runners.gpu.contract import SCHEMA
from runners.gpu.deployment import function_name
from runners.registry import GpuType


class Command(BaseCommand):
    help = "Show what is deployed at Modal. Exit code 1 if something would keep jobs from running."

    def handle(self, *args: Any, **options: Any) -> None:
        gpus = [gpu for gpu in settings.GPU_TYPES.values() if gpu.runner == "modal"]
        if not gpus:
            raise CommandError("GPU_TYPES has no GPU type with the runner modal")
        try:
            stops = asyncio.run(self._show(gpus))
        except modal_faults.EXPECTED as error:
            fault = modal_faults.fault_of(error)
            raise CommandError(f"{fault.kind}: {fault}\nModal: {error!r}") from error
        if stops:
            raise CommandError(f"{stops} of {len(gpus)} GPU types can't be used")

    async def _show(self, gpus: list[GpuType]) -> int:
        client = ModalClient(
            settings.MODAL_TOKEN_ID,
            settings.MODAL_TOKEN_SECRET,
            app=settings.MODAL_APP_NAME,
            environment=settings.MODAL_ENVIRONMENT,
        )
        try:
            return await self._show_all(client, gpus)
        finally:
            await client.close()

    async def _show_all(self, client: ModalClient, gpus: list[GpuType]) -> int:
        tags = await client.app_tags()
        said = ", ".join(f"{name} {value}" for name, value in sorted(tags.items()))
        self.stdout.write(f"app {settings.MODAL_APP_NAME}: {said or 'no tags'}")
        self.stdout.write(
            f"this service: deployment {settings.MODAL_DEPLOYMENT}, schema {SCHEMA}, "
            f"build {build_id()}, ncu {settings.NCU_VERSIONS.get('modal', 'any')}"
        )
        return sum([await self._show_function(client, gpu.name, tags) for gpu in gpus])

    async def _show_function(self, client: ModalClient, gpu: str, tags: dict[str, str]) -> bool:
        """Whether something stops jobs of this GPU type."""
        name = function_name(gpu)
        try:
            function, info = await client.find_function(name)
        except modal.exception.NotFoundError:
            self.stdout.write(self.style.ERROR(f"{gpu}: {name} is not deployed"))
            return True
        flags = {
            "restricted": info.restrict_modal_access,
            "single use": info.single_use_containers,
            "network": "closed" if info.block_network else "open",
            "retries": info.max_retries or 0,
            "limit": f"{info.timeout} s",
            "waiting": await self._depth(client, function),
        }
        shown = ", ".join(f"{flag}: {value}" for flag, value in flags.items())
        self.stdout.write(f"{gpu}: {name} on {info.gpus}, {shown}")
        problems = find_problems(gpu, info, tags)
        for problem in problems:
            style = self.style.ERROR if problem.stops else self.style.WARNING
            self.stdout.write(style(f"    {problem.kind}: {problem.message}"))
        return any(problem.stops for problem in problems)

    async def _depth(self, client: ModalClient, function: Any) -> str:
        try:
            return str(await client.backlog(function))
        except (*modal_faults.EXPECTED, RunnerFault):
            return "unknown"
