"""A page of a browser, and the addresses that tests open in it."""

from __future__ import annotations

SMALL_PHONE, PHONE, DESKTOP = 360, 390, 1280
CAPTURES = "/operators/profiling/capture/"
LIST = "/operators/profiling/profilerequest/"
CUT_TABLES = """() => [...document.querySelectorAll('table')].filter((table) => {
  const box = table.closest('.scroll, .results') ?? table.parentElement;
  return box.scrollWidth > box.clientWidth || table.scrollWidth > table.clientWidth;
}).map((table) => table.parentElement.ariaLabel || table.id || table.className)"""


class Watched:
    """A page of a browser that remembers what went wrong in it."""

    def __init__(self, browser, base_url, *, width=DESKTOP, scheme="light", scripts=True):
        self.context = browser.new_context(
            base_url=base_url,
            viewport={"width": width, "height": 900},
            color_scheme=scheme,
            java_script_enabled=scripts,
        )
        self.context.set_default_timeout(30_000)
        self.page = self.context.new_page()
        self.troubles = []
        self.page.on("pageerror", lambda error: self.troubles.append(str(error)))
        self.page.on("console", self._hear)
        self.page.on("requestfailed", self._miss)

    def _hear(self, said):
        # The admin site has no icon, and browsers ask for one.
        if said.type == "error" and not said.location["url"].endswith("/favicon.ico"):
            self.troubles.append(said.text)

    def _miss(self, request):
        # A download, for a browser, is a navigation that was given up.
        if request.failure != "net::ERR_ABORTED":
            self.troubles.append(f"{request.url}: {request.failure}")

    def sign_in(self):
        self.page.goto("/operators/login/")
        self.page.get_by_label("Username").fill("olga")
        self.page.get_by_label("Password").fill("olga-password")
        self.page.get_by_role("button", name="Log in").click()
        self.page.get_by_role("link", name="Profile requests").first.wait_for()
        return self

    def overflow(self):
        """By how many pixels the page is wider than the window."""
        return self.page.evaluate("document.documentElement.scrollWidth - window.innerWidth")

    def cut_tables(self):
        """Which tables are seen whole only by scrolling sideways."""
        return self.page.evaluate(CUT_TABLES)


def review_of(request_id):
    return f"{LIST}{request_id}/review/"
