#!/usr/bin/env python3
"""Looks at the page of loadline-exporter in a headless Chromium, and prints what it found as JSON. It speaks the browser's debugging protocol over
a pipe, so it needs no other package, and the page is as it is.

usage: page_look.py URL --profile FOLDER [--language CODE] [--width PIXELS] [--dark] [--until TEXT] [--click SELECTOR] [--axe FILE] [--picture FILE]"""
import argparse
import base64
import json
import os
import pathlib
import subprocess

FOUND = """(async () => {
	while (!document.querySelector('#main section') || !document.body.innerText.includes(%s))
		await new Promise(done => setTimeout(done, 50));
	const click = %s;
	if (click)
		document.querySelector(click).click();
	const axeFound = window.axe ? await axe.run(document, {resultTypes: ['violations'], preload: false}) : {passes: [], violations: []};
	return {
		language: document.documentElement.lang, heading: document.querySelector('h2').textContent, state: document.getElementById('state').innerText,
		isOld: document.body.classList.contains('is-old'), text: document.getElementById('main').innerText, images: document.images.length,
		charts: document.querySelectorAll('canvas').length, width: innerWidth, height: document.documentElement.scrollHeight,
		overflows: document.documentElement.scrollWidth > innerWidth, isDark: matchMedia('(prefers-color-scheme: dark)').matches,
		passes: axeFound.passes.length, violations: axeFound.violations.map(one => one.id + ': ' + one.nodes.map(node => node.html).join(' ')),
	};
})()"""


class Browser:
    """Messages end with a NUL: to the browser on its descriptor 3, from it on 4."""

    def __init__(self, profile, language):
        from_us, self.out = os.pipe()
        self.source, to_us = os.pipe()
        command = ["chromium", "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars",
                   f"--user-data-dir={profile}", f"--lang={language}", f"--accept-lang={language}", "--remote-debugging-pipe"]
        shell = ["sh", "-c", f'exec "$@" 3<&{from_us} 4>&{to_us}', "-", *command]
        self.process = subprocess.Popen(shell, pass_fds=(from_us, to_us), stderr=subprocess.DEVNULL)
        os.close(from_us)
        os.close(to_us)
        self.rest, self.number, self.said, self.session = b"", 0, [], None

    def receive(self):
        while b"\0" not in self.rest:
            part = os.read(self.source, 1 << 20)
            if not part:
                raise SystemExit("the browser has ended")
            self.rest += part
        message, self.rest = self.rest.split(b"\0", 1)
        return json.loads(message)

    def note(self, message):
        """What the page says on its console, and what the browser says of it."""
        method, params = message.get("method"), message.get("params", {})
        if method == "Runtime.exceptionThrown":
            self.said.append(json.dumps(params["exceptionDetails"]))
        elif method == "Runtime.consoleAPICalled":
            self.said.append(" ".join(str(value.get("value", value.get("description"))) for value in params["args"]))
        elif method == "Log.entryAdded":
            self.said.append(params["entry"]["text"])

    def call(self, method, **params):
        self.number += 1
        message = {"id": self.number, "method": method, "params": params, **({"sessionId": self.session} if self.session else {})}
        os.write(self.out, json.dumps(message).encode() + b"\0")
        while True:
            reply = self.receive()
            if reply.get("id") == self.number:
                if "error" in reply:
                    raise SystemExit(f"{method}: {reply['error']}")
                return reply["result"]
            self.note(reply)

    def evaluate(self, expression):
        reply = self.call("Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True)
        if "exceptionDetails" in reply:
            raise SystemExit(json.dumps(reply["exceptionDetails"]))
        return reply["result"].get("value")

    def open(self, width):
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Runtime", "Log", "Page"):
            self.call(f"{domain}.enable")
        self.resize(width, 900)

    def resize(self, width, height):
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("url")
    parser.add_argument("--profile", required=True)
    parser.add_argument("--language", default="en-US")
    parser.add_argument("--width", type=int, default=1280)
    parser.add_argument("--dark", action="store_true")
    parser.add_argument("--click", default="")
    parser.add_argument("--until", default="", help="wait until the page has this text")
    parser.add_argument("--axe", type=pathlib.Path)
    parser.add_argument("--picture", type=pathlib.Path)
    args = parser.parse_args()
    browser = Browser(args.profile, args.language)
    try:
        browser.open(args.width)
        if args.dark:
            browser.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": "dark"}])
        browser.call("Page.navigate", url=args.url)
        browser.evaluate("new Promise(done => document.readyState === 'complete' ? done() : addEventListener('load', () => done()))")
        if args.axe:
            browser.evaluate(args.axe.read_text() + "\n;0")
        found = browser.evaluate(FOUND % (json.dumps(args.until), json.dumps(args.click)))
        if args.picture:
            browser.resize(args.width, found["height"])
            args.picture.write_bytes(base64.b64decode(browser.call("Page.captureScreenshot")["data"]))
        print(json.dumps({**found, "console": browser.said}))
    finally:
        browser.process.kill()
        browser.process.wait()


main()
