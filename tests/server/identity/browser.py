"""A browser on the activation page: keeps cookies, fills in the forms that a page really has."""

from __future__ import annotations

from html.parser import HTMLParser
from urllib.parse import urlencode

import httpx


class Page(HTMLParser):
    """The forms of a page, each as (action, fields, text), and the page's text."""

    def __init__(self, response):
        super().__init__()
        self.status = response.status_code
        self.headers = response.headers
        self.html = response.text
        self.forms = []
        self.words = []
        self._inside = False
        self.feed(response.text)
        self.text = " ".join(" ".join(self.words).split())

    def handle_starttag(self, tag, attrs):
        attrs = dict(attrs)
        if tag == "form":
            self.forms.append({"action": attrs["action"], "fields": {}, "text": ""})
            self._inside = True
        elif tag == "input" and self._inside and attrs.get("type") != "checkbox":
            self.forms[-1]["fields"][attrs["name"]] = attrs.get("value", "")

    def handle_endtag(self, tag):
        if tag == "form":
            self._inside = False

    def handle_data(self, data):
        self.words.append(data)
        if self._inside:
            self.forms[-1]["text"] += data

    def form(self, words):
        """The one form whose text has these words."""
        (found,) = [form for form in self.forms if words in form["text"]]
        return found


class Browser:
    def __init__(self, base_url, **headers):
        self.http = httpx.Client(
            base_url=base_url,
            headers={"Accept": "text/html,application/xhtml+xml,*/*;q=0.8"} | headers,
            timeout=60,
            trust_env=False,
        )

    def open(self, path="/activate/"):
        return Page(self._follow(self.http.get(path)))

    def send(self, form, **fields):
        return self._follow(self.post(form, **fields))

    def post(self, form, **fields):
        return self.http.post(form["action"], data=form["fields"] | fields)

    def submit(self, form, **fields):
        return Page(self.send(form, **fields))

    def go_to_provider(self, label="GitHub"):
        """Press the button; the provider's address that the service sends the browser to."""
        page = self.open()
        response = self.post(page.form(f"Sign in with {label}"))
        assert response.status_code == 303, response.text
        return response.headers["location"]

    def come_back(self, redirect_uri, query):
        return Page(self._follow(self.http.get(f"{redirect_uri}?{urlencode(query)}")))

    def sign_in(self, provider, label="GitHub"):
        """The whole trip; the page that it ends on."""
        return self.come_back(*provider.consent(self.go_to_provider(label)))

    def _follow(self, response):
        while response.status_code == 302:
            response = self.http.get(response.headers["location"])
        return response

    def close(self):
        self.http.close()
