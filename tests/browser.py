# SPDX-License-Identifier: GPL-2.0 OR MIT
#
# browser.py: drives headless Chromium through chromedriver (WebDriver over localhost), with Python's standard library.

import base64
import json
import subprocess
import time
import urllib.request

ELEMENT = 'element-6066-11e4-a52e-4f735466cecf'


class Browser:
    """A browser with one window; `with` closes it."""

    def __init__(self, width=1280, height=800, dark=False):
        self.driver = subprocess.Popen(['chromedriver', '--port=0'], stdout=subprocess.PIPE, text=True)
        port = None
        for line in self.driver.stdout:
            if 'on port' in line and 'successfully' in line:
                port = line.rstrip('.\n').rsplit(' ', 1)[1]
                break
        assert port, 'chromedriver did not start'
        self.base = f'http://127.0.0.1:{port}'
        # to run as root, and where there is no graphics driver; --hide-scrollbars keeps widths the same everywhere
        args = ['--headless=new', '--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage', '--hide-scrollbars',
                '--disable-background-networking', f'--window-size={width},{height}']
        if dark:
            args.append('--force-dark-mode')
        options = {'args': args, 'binary': '/usr/bin/chromium'}
        asked = {'capabilities': {'alwaysMatch': {'browserName': 'chrome', 'goog:chromeOptions': options,
                                                  'goog:loggingPrefs': {'browser': 'ALL'},
                                                  'unhandledPromptBehavior': 'ignore'}}}
        self.session = self.base + '/session/' + self.call('POST', self.base + '/session', asked)['sessionId']

    def __enter__(self):
        return self

    def __exit__(self, *_):
        try:
            self.ask('DELETE', '')
        finally:
            self.driver.terminate()
            self.driver.wait()

    @staticmethod
    def call(method, url, body=None):
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(url, data, {'Content-Type': 'application/json'}, method=method)
        # localhost only, even if the environment sets a proxy
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        try:
            return json.load(opener.open(request))['value']
        except urllib.error.HTTPError as error:
            raise AssertionError(f'{method} {url}: {error.read().decode()}') from None

    def ask(self, method, path, body=None):
        return self.call(method, self.session + path, body)

    def open(self, file):
        self.ask('POST', '/url', {'url': 'file://' + str(file)})
        self.until('return document.documentElement.dataset.ready === "yes"')

    def run(self, script, *args):
        """Runs a script in the page, and returns its result."""
        return self.ask('POST', '/execute/sync', {'script': script, 'args': list(args)})

    def until(self, script, *args):
        """Waits until a script returns something true; only the caller's time limit ends the wait earlier."""
        while not (result := self.run(script, *args)):
            time.sleep(0.05)
        return result

    def find(self, selector):
        return self.ask('POST', '/element', {'using': 'css selector', 'value': selector})[ELEMENT]

    def click(self, selector):
        self.ask('POST', f'/element/{self.find(selector)}/click', {})

    def keys(self, selector, text):
        self.ask('POST', f'/element/{self.find(selector)}/value', {'text': text})

    def text(self, selector):
        return self.run('return document.querySelector(arguments[0]).innerText', selector)

    def pointer(self, selector, steps):
        """Moves the pointer relative to the centre of an element: ('move', x, y), ('down',), ('up',)."""
        origin = {ELEMENT: self.find(selector)}
        actions = []
        for what, *at in steps:
            if what == 'move':
                actions.append({'type': 'pointerMove', 'duration': 0, 'origin': origin, 'x': at[0], 'y': at[1]})
            else:
                actions.append({'type': 'pointer' + what.capitalize(), 'button': 0})
        mouse = {'type': 'pointer', 'id': 'mouse', 'parameters': {'pointerType': 'mouse'}, 'actions': actions}
        self.ask('POST', '/actions', {'actions': [mouse]})

    def wheel(self, selector, x, y, by):
        turn = {'type': 'scroll', 'x': x, 'y': y, 'deltaX': 0, 'deltaY': by, 'duration': 0,
                'origin': {ELEMENT: self.find(selector)}}
        self.ask('POST', '/actions', {'actions': [{'type': 'wheel', 'id': 'wheel', 'actions': [turn]}]})

    def size(self, width, height):
        self.ask('POST', '/window/rect', {'width': width, 'height': height})

    def screenshot(self, file):
        with open(file, 'wb') as out:
            out.write(base64.b64decode(self.ask('GET', '/screenshot')))

    def complaints(self):
        """Returns the errors and warnings in the browser's log."""
        log = self.ask('POST', '/se/log', {'type': 'browser'})
        return [entry['message'] for entry in log if entry['level'] in ('SEVERE', 'WARNING')]
