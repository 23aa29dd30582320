"""How a client says who it is, as the settings give it to the schema."""

from __future__ import annotations

CLI, WEB, TOKEN, SESSION = "CliId", "WebId", "AdminToken", "OperatorSession"
SECURITY_SCHEMES = {
    CLI: {"type": "apiKey", "in": "header", "name": "X-Popcorn-Cli-Id"},
    WEB: {"type": "apiKey", "in": "header", "name": "X-Web-Auth-Id"},
    TOKEN: {"type": "http", "scheme": "bearer"},
    SESSION: {"type": "apiKey", "in": "cookie", "name": "operator_session"},
}
