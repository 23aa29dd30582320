"""All settings, read strictly from the environment: docs/settings.md lists the variables.

A variable that is set and cannot be read stops the process with its name; nothing falls back. A
secret NAME may be given as a file instead, by NAME_FILE.
"""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

from django.utils.csp import CSP
from environs import EnvValidationError, FileAwareEnv, validate

from kernelbot_site.openapi.security import SECURITY_SCHEMES
from leaderboards.api.client_address import TrustedProxies
from runners.registry import GpuType, read_gpu_types
from runners.storage_address import read_storage

env = FileAwareEnv()
BASE_DIR = Path(__file__).resolve().parent.parent

# --- What differs between a laptop and production ---
DEBUG: bool = env.bool("DEBUG", False)
SECRET_KEY: str = env.str("SECRET_KEY")
ALLOWED_HOSTS: list[str] = env.list("ALLOWED_HOSTS", ["localhost", "127.0.0.1", "[::1]"])
# Where clients reach this service, without a slash at the end; addresses in answers begin with it.
PUBLIC_URL: str = env.str("PUBLIC_URL", "http://127.0.0.1:8000").rstrip("/")
HTTPS: bool = PUBLIC_URL.startswith("https://")
# Addresses and networks of the proxies whose X-Forwarded-For is believed; "unix" for a Unix socket.
TRUSTED_PROXIES = TrustedProxies.read(env.list("TRUSTED_PROXIES", []))
# Local state: the embedded database, local report files, runs of the local runner.
DATA_DIR: Path = env.path("DATA_DIR", BASE_DIR / "var")
LOG_LEVEL: int = env.log_level("LOG_LEVEL", logging.INFO)
# "line" for people, "json" for collectors of logs.
LOG_FORMAT: str = env.str("LOG_FORMAT", "line", validate=validate.OneOf(["line", "json"]))
# Where errors are reported, beside the log; needs the extra `sentry`.
SENTRY_DSN: str = env.str("SENTRY_DSN", "").strip()

# --- Database, storage, cache ---
DATABASES: dict[str, Any] = {
    "default": env.dj_db_url("DATABASE_URL", f"sqlite:///{DATA_DIR / 'kernelbot.sqlite3'}")
}
if DATABASES["default"]["ENGINE"] == "django.db.backends.sqlite3":
    # Write transactions begin as such, readers do not block the writer, waiting is bounded (FR-31).
    DATABASES["default"]["OPTIONS"] = {
        "transaction_mode": "IMMEDIATE",
        "timeout": 20,
        "init_command": "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL;",
    }
else:
    DATABASES["default"]["CONN_HEALTH_CHECKS"] = True
    # Connections of one process, shared by its threads; 0 opens one for each request. Behind
    # PgBouncer use 0: it is the pool. (psycopg prepares no statements unless told to.)
    if (pool_max := env.int("DATABASE_POOL_MAX", 0)) > 0:
        DATABASES["default"].setdefault("OPTIONS", {})["pool"] = {
            "min_size": 1,
            "max_size": pool_max,
            "timeout": 10,
        }
    DATABASES["default"]["DISABLE_SERVER_SIDE_CURSORS"] = env.bool("DATABASE_IS_PGBOUNCER", False)

# file:///path, s3://bucket, gs://bucket or azure://container, each with a path if wanted.
REPORTS_STORAGE_URL: str = env.str("REPORTS_STORAGE_URL", (DATA_DIR.resolve() / "reports").as_uri())
REPORTS_S3_ENDPOINT: str = env.str("REPORTS_S3_ENDPOINT", "")
try:
    _reports = read_storage(REPORTS_STORAGE_URL, endpoint=REPORTS_S3_ENDPOINT)
except ValueError as error:
    raise EnvValidationError(
        f'Environment variable "REPORTS_STORAGE_URL" invalid: {error}', [str(error)]
    ) from error
# Seconds for which the storage itself gives an archive to whoever has its address; 0 turns it off.
SIGNED_DOWNLOADS_S: int = env.int("SIGNED_DOWNLOADS_S", 0, validate=validate.Range(min=0))
STORAGES: dict[str, Any] = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "staticfiles": {"BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"},
    "reports": _reports,
}
CACHES: dict[str, Any] = {"default": env.dj_cache_url("CACHE_URL", "locmem://")}
if CACHES["default"]["BACKEND"].endswith("LocMemCache"):
    # At its default of 300 entries it would drop counts of flood limits when many people are about.
    CACHES["default"]["OPTIONS"] = {"MAX_ENTRIES": 100_000}
if CACHES["default"]["BACKEND"] == "django.core.cache.backends.redis.RedisCache":
    # A Redis that does not answer must not keep a thread: errors.py answers 503 instead.
    CACHES["default"]["OPTIONS"] = {"socket_timeout": 2, "socket_connect_timeout": 2}

# --- GPUs and runners ---
# {"B200": {"runner": "modal", "sm": "100", "ncu": true, "max_in_flight": 4}, ...}
GPU_TYPES: dict[str, GpuType] = read_gpu_types(env.json("GPU_TYPES", {}))
# The NCU version that must do the capture, by runner; a runner that is left out accepts any.
NCU_VERSIONS: dict[str, str] = env.dict("NCU_VERSIONS", {"modal": "2025.2.1"})
# The archive of a capture that the `recorded` runner replays.
RECORDED_ARCHIVE: Path = env.path("RECORDED_ARCHIVE", BASE_DIR / "examples/recorded/capture.zip")
# Where tests plan and count the runs of the `fake` runner.
FAKE_RUNNER_DIR: Path = env.path("FAKE_RUNNER_DIR", DATA_DIR / "fake-runs")
# Who runs submissions of the `local` runner when the dispatcher is root.
LOCAL_RUN_USER: str = env.str("LOCAL_RUN_USER", "nobody")
# Limits of its submissions: memory where no GPU is used, processes where it has its own user.
LOCAL_MEMORY_BYTES: int = env.int("LOCAL_MEMORY_BYTES", 4 * 2**30)
LOCAL_PROCESSES: int = env.int("LOCAL_PROCESSES", 512)
# Whether they reach this machine's network, and through it everybody else's.
LOCAL_NETWORK: bool = env.bool("LOCAL_NETWORK", False)

# --- KernelGuard: reads submissions before they run, in all modes but test; off without a command ---
KERNELGUARD_COMMAND: str = env.str("KERNELGUARD_COMMAND", "").strip()
KERNELGUARD_PROFILE: str = env.str("KERNELGUARD_PROFILE", "")
KERNELGUARD_CONFIG: str = env.str("KERNELGUARD_CONFIG", "")
KERNELGUARD_TIMEOUT_SEC: float = env.float("KERNELGUARD_TIMEOUT_SEC", 300)
# Whether submissions run unchecked when the command cannot be run or gives no answer.
KERNELGUARD_FAIL_OPEN: bool = env.bool("KERNELGUARD_FAIL_OPEN", False)

# --- Modal: docs/modal.md. Only the dispatcher's environment holds the token ---
MODAL_APP_NAME: str = env.str("MODAL_APP_NAME", "kernelbot")
MODAL_ENVIRONMENT: str = env.str("MODAL_ENVIRONMENT", "")
# The name of this deployment, as its app is tagged: no two of them may share an app.
MODAL_DEPLOYMENT: str = env.str("MODAL_DEPLOYMENT", "")
# Whether submissions are cut off from the network; it must agree with what was deployed.
MODAL_BLOCK_NETWORK: bool = env.bool("MODAL_BLOCK_NETWORK", False)
MODAL_TOKEN_ID: str = env.str("MODAL_TOKEN_ID", "")
MODAL_TOKEN_SECRET: str = env.str("MODAL_TOKEN_SECRET", "")

# --- Who may ask ---
# Of the admin API (`Authorization: Bearer …`); where it is not set, that API is off.
ADMIN_TOKEN: str = env.str("ADMIN_TOKEN", "").strip()
# Of GET /metrics (`Authorization: Bearer …`); where it is not set, there are no metrics.
METRICS_TOKEN: str = env.str("METRICS_TOKEN", "").strip()
# Providers at which people sign in to the activation page; one without id and secret is not offered.
DISCORD_CLIENT_ID: str = env.str("DISCORD_CLIENT_ID", "").strip()
DISCORD_CLIENT_SECRET: str = env.str("DISCORD_CLIENT_SECRET", "").strip()
DISCORD_URL: str = env.str("DISCORD_URL", "https://discord.com").rstrip("/")
GITHUB_CLIENT_ID: str = env.str("GITHUB_CLIENT_ID", "").strip()
GITHUB_CLIENT_SECRET: str = env.str("GITHUB_CLIENT_SECRET", "").strip()
GITHUB_URL: str = env.str("GITHUB_URL", "https://github.com").rstrip("/")
GITHUB_API_URL: str = env.str("GITHUB_API_URL", "https://api.github.com").rstrip("/")
# How long a provider may take over one sign-in.
PROVIDER_LIMIT_S: float = env.float("PROVIDER_LIMIT_S", 10)
# How long an id that /auth/init issued can be activated; then it is forgotten.
ACTIVATION_LIMIT_S: float = env.float("ACTIVATION_LIMIT_S", 3600)
# Registrations and sign-ins begun by one address, and ids tried by one person.
AUTH_RATE: str = env.str("AUTH_RATE", "20/m")
ACTIVATION_RATE: str = env.str("ACTIVATION_RATE", "10/m")

# How long the link to a request's page works that its stream gives out.
REVIEW_LINK_DAYS: float = env.float("REVIEW_LINK_DAYS", 30)

# --- Where problems come from: docs/problems.md ---
# Holds the problems of which POST /admin/leaderboards makes leaderboards for trying them.
PROBLEMS_DIR: Path = env.path("PROBLEMS_DIR", BASE_DIR / "examples/problems")
# What POST /admin/update-problems may be asked for: names on GitHub, or addresses of git.
PROBLEM_REPOSITORIES: list[str] = env.list("PROBLEM_REPOSITORIES", ["gpu-mode/reference-kernels"])
# Hosts (with their port, if it is not the usual one) that are asked for problems, and no others.
PROBLEM_HOSTS: list[str] = env.list("PROBLEM_HOSTS", ["github.com", "codeload.github.com"])
# Whoever can read along may also write along, so anything but https is for tests.
PROBLEM_SCHEMES: list[str] = env.list("PROBLEM_SCHEMES", ["https"])
# Where GitHub has the archives of its repositories.
GITHUB_ARCHIVES_URL: str = env.str("GITHUB_ARCHIVES_URL", "https://codeload.github.com").rstrip("/")
# How long fetching may take; the CLI waits 120 s for all of it.
PROBLEM_FETCH_LIMIT_S: float = env.float("PROBLEM_FETCH_LIMIT_S", 75)

# --- Time limits in seconds; architecture.md says why, checks.py holds their order ---
COMPILE_LIMIT_S: float = env.float("COMPILE_LIMIT_S", 120)
CAPTURE_LIMIT_S: float = env.float("CAPTURE_LIMIT_S", 600)
EXPORT_LIMIT_S: float = env.float("EXPORT_LIMIT_S", 120)
JOB_LIMIT_S: float = env.float("JOB_LIMIT_S", 3000)
START_LIMIT_S: float = env.float("START_LIMIT_S", 30)
# From RUNNING to the dispatcher's own wall: start-up of a container, then the job, then a margin.
RUN_WALL_S: float = env.float("RUN_WALL_S", 3000 + 120 + 600)
# A job that waits longer than this for a GPU is timed out.
QUEUE_LIMIT_S: float = env.float("QUEUE_LIMIT_S", 6 * 3600)
STREAM_LIMIT_S: float = env.float("STREAM_LIMIT_S", 3540)
STREAM_STATUS_EVERY_S: float = env.float("STREAM_STATUS_EVERY_S", 15)
WATCH_EVERY_S: float = env.float("WATCH_EVERY_S", 0.2)
LEASE_S: float = env.float("LEASE_S", 30)
POLL_EVERY_S: float = env.float("POLL_EVERY_S", 1)
# A run that no row knows is an orphan when it is older than START_LIMIT_S and this.
START_MARGIN_S: float = env.float("START_MARGIN_S", 60)
# How long a provider may fail without a break before its run is given up (FR-24).
POLL_PATIENCE_S: float = env.float("POLL_PATIENCE_S", 120)
# How long storing and reading a result is tried again: a sick storage must not cost a capture.
COLLECT_PATIENCE_S: float = env.float("COLLECT_PATIENCE_S", 1800)
# Starts of one job in all, and the pause before the second; it doubles each time.
MAX_ATTEMPTS: int = env.int("MAX_ATTEMPTS", 5)
RETRY_DELAY_S: float = env.float("RETRY_DELAY_S", 5)
# A job over which the dispatcher itself stumbled waits this long, so that others come first.
POISON_DELAY_S: float = env.float("POISON_DELAY_S", 60)

# --- Sizes and rates ---
SUBMISSION_MAX_BYTES = 1_000_000  # wire-contract.md, 13.1
UPLOAD_LIMIT_S: float = env.float("UPLOAD_LIMIT_S", 60)
RESULT_LINE_MAX_BYTES: int = env.int("RESULT_LINE_MAX_BYTES", 32 * 2**20)
ENVELOPE_MAX_BYTES: int = env.int("ENVELOPE_MAX_BYTES", 2 * 2**30)
LAUNCH_COUNT_MAX: int = env.int("LAUNCH_COUNT_MAX", 1000)
IN_FLIGHT_PER_USER: int = env.int("IN_FLIGHT_PER_USER", 4)
PROFILE_RATE: str = env.str("PROFILE_RATE", "30/m")

# --- Django ---
INSTALLED_APPS = [
    "kernelbot_site",
    "profiling",
    "leaderboards",
    "runners",
    "rest_framework",
    "drf_spectacular",
    "drf_spectacular_sidecar",  # the page at /docs, from here and not from elsewhere
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
]
MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "django.middleware.csp.ContentSecurityPolicyMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",  # Content-Length, and no foreign Host
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
]
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ]
        },
    }
]
ROOT_URLCONF = "kernelbot_site.urls"
ASGI_APPLICATION = "kernelbot_site.asgi.application"
AUTH_USER_MODEL = "leaderboards.PopcornUser"
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": f"django.contrib.auth.password_validation.{name}"}
    for name in (
        "UserAttributeSimilarityValidator",
        "MinimumLengthValidator",
        "CommonPasswordValidator",
        "NumericPasswordValidator",
    )
]
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
LANGUAGE_CODE = "en-us"
FORMAT_MODULE_PATH = "kernelbot_site.formats"
USE_TZ = True
TIME_ZONE = "UTC"
STATIC_URL = "static/"
STATIC_ROOT: Path = env.path("STATIC_ROOT", DATA_DIR / "static")
APPEND_SLASH = False  # a redirect would lose the CLI's multipart body
DATA_UPLOAD_MAX_NUMBER_FIELDS = 20
# Above the largest body that the ASGI wrapper lets pass, so that uploads stay in memory.
DATA_UPLOAD_MAX_MEMORY_SIZE = FILE_UPLOAD_MAX_MEMORY_SIZE = 2 * 2**20
REST_FRAMEWORK = {
    "DEFAULT_AUTHENTICATION_CLASSES": [],
    "DEFAULT_PERMISSION_CLASSES": [],
    "DEFAULT_RENDERER_CLASSES": ["rest_framework.renderers.JSONRenderer"],
    "DEFAULT_PARSER_CLASSES": ["rest_framework.parsers.JSONParser"],
    "DEFAULT_CONTENT_NEGOTIATION_CLASS": "kernelbot_site.negotiation.AlwaysJson",
    "EXCEPTION_HANDLER": "kernelbot_site.errors.exception_handler",
    "DEFAULT_METADATA_CLASS": None,  # OPTIONS is a 405: nobody needs a view's description
    "UNAUTHENTICATED_USER": None,
    "DEFAULT_SCHEMA_CLASS": "kernelbot_site.openapi.schema.TabledSchema",
    "STRICT_JSON": True,
    "COMPACT_JSON": True,
    "UNICODE_JSON": False,
}
# `make openapi` writes docs/openapi.yaml.
SPECTACULAR_SETTINGS = {
    "TITLE": "KernelBot",
    "DESCRIPTION": "Competitions of GPU kernels, with hosted Nsight Compute profiling.",
    "VERSION": "1",
    "GET_MOCK_REQUEST": "kernelbot_site.openapi.schema.mock_request",
    "PATH_CONVERTER_OVERRIDES": {"name": str, "free_name": str},
    "APPEND_COMPONENTS": {"securitySchemes": SECURITY_SCHEMES},
    "ENUM_NAME_OVERRIDES": {
        "RequestVerdictEnum": "profiling.models.ProfileRequest.Verdict",
        "CaptureVerdictEnum": "profiling.models.Capture.Verdict",
    },
}

# --- Security ---
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = HTTPS
SECURE_SSL_REDIRECT = HTTPS and env.bool("REDIRECT_TO_HTTPS", True)
# Asked by monitors on the process's own port, where there is no TLS.
SECURE_REDIRECT_EXEMPT = [r"^ready$", r"^metrics$"]
# Only a proxy that is known sets it, and deploy/nginx.conf overwrites what a client sent.
SECURE_PROXY_SSL_HEADER = (
    ("HTTP_X_FORWARDED_PROTO", "https") if TrustedProxies() != TRUSTED_PROXIES else None
)
SECURE_HSTS_SECONDS: int = env.int("HSTS_SECONDS", 31_536_000) if HTTPS else 0
SECURE_HSTS_INCLUDE_SUBDOMAINS = SECURE_HSTS_PRELOAD = HTTPS
SECURE_REFERRER_POLICY = "same-origin"
# Nothing inline and nothing from elsewhere, whatever a stranger's kernel calls itself. The admin
# site has small images inside its style sheets.
SECURE_CSP = {
    "default-src": [CSP.NONE],
    "script-src": [CSP.SELF],
    "style-src": [CSP.SELF],
    "img-src": [CSP.SELF, "data:"],
    "connect-src": [CSP.SELF],
    "form-action": [CSP.SELF],
    "base-uri": [CSP.NONE],
    "frame-ancestors": [CSP.NONE],
}
X_FRAME_OPTIONS = "DENY"
SESSION_COOKIE_NAME = "operator_session"
LOGIN_URL = "/operators/login/"
CSRF_TRUSTED_ORIGINS = [PUBLIC_URL]
CSRF_FAILURE_VIEW = "kernelbot_site.errors.csrf_failure"
# The embedded default is one web process, which shares a local cache with nobody. With more
# processes a shared cache is needed: kernelbot_site/checks.py refuses to start without one.
WEB_PROCESSES: int = env.int("WEB_PROCESSES", 1)
SILENCED_SYSTEM_CHECKS = ["django_ratelimit.E003", "django_ratelimit.W001"]

# Never written to a log, whatever a traceback quotes.
SECRETS = [
    SECRET_KEY,
    ADMIN_TOKEN,
    METRICS_TOKEN,
    MODAL_TOKEN_ID,
    MODAL_TOKEN_SECRET,
    DISCORD_CLIENT_SECRET,
    GITHUB_CLIENT_SECRET,
    str(DATABASES["default"].get("PASSWORD", "")),
    env.str("AWS_SECRET_ACCESS_KEY", ""),
    env.str("CACHE_URL", ""),
]
LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {
        "chosen": {
            "()": f"kernelbot_site.logs.{'JsonLine' if LOG_FORMAT == 'json' else 'Line'}",
            "secrets": SECRETS,
        }
    },
    "filters": {"refusals": {"()": "kernelbot_site.logs.RefusalsAreWarnings"}},
    "handlers": {
        "stderr": {
            "class": "logging.StreamHandler",
            "formatter": "chosen",
            "filters": ["refusals"],
        }
    },
    "root": {"handlers": ["stderr"], "level": LOG_LEVEL},
    "loggers": {
        # At INFO it logs whole addresses, and those of results are signed.
        "httpx": {"level": "WARNING"},
        # The web server's own handlers would write another format.
        "uvicorn": {"handlers": ["stderr"], "level": "WARNING", "propagate": False},
    },
}
