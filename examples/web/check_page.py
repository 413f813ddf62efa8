"""Clicks through the page in Chromium, compares what it shows with the native program's scores, and keeps
pictures.

    check_page.py PAGE SCORES PICTURES
"""
import base64
import json
import pathlib
import subprocess
import sys
import time
import urllib.request

page, scores, pictures = (pathlib.Path(each).resolve() for each in sys.argv[1:])
port = 9515


def call(method, path, body=None):
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(f'http://127.0.0.1:{port}{path}', data, method=method)
    with urllib.request.urlopen(request, timeout=60) as answer:
        return json.load(answer)['value']


class Browser:
    """A window of Chromium with a width, light or dark."""

    def __init__(self, width, scheme):
        arguments = ['--headless=new', '--no-sandbox', '--hide-scrollbars', f'--window-size={width},1400']
        capabilities = {'alwaysMatch': {'browserName': 'chrome', 'goog:chromeOptions': {'args': arguments}}}
        self.path = '/session/' + call('POST', '/session', {'capabilities': capabilities})['sessionId']
        self.command('/goog/cdp/execute', {'cmd': 'Emulation.setEmulatedMedia', 'params': {
            'features': [{'name': 'prefers-color-scheme', 'value': scheme}]}})
        self.command('/goog/cdp/execute', {'cmd': 'Emulation.setDeviceMetricsOverride', 'params': {
            'width': width, 'height': 900, 'deviceScaleFactor': 1, 'mobile': width < 600}})
        self.command('/url', {'url': page.as_uri()})

    def command(self, path, body):
        return call('POST', self.path + path, body)

    def run(self, script):
        return self.command('/execute/sync', {'script': script, 'args': []})

    def click(self, selector):
        found = self.command('/element', {'using': 'css selector', 'value': selector})
        self.command(f'/element/{next(iter(found.values()))}/click', {})

    def picture(self, name):
        shot = self.command('/goog/cdp/execute', {
            'cmd': 'Page.captureScreenshot', 'params': {'captureBeyondViewport': True}})
        (pictures / name).write_bytes(base64.b64decode(shot['data']))

    def close(self):
        call('DELETE', self.path)


def check(holds, what):
    if not holds:
        sys.exit(f'check_page.py: {what}')


def check_window(width, scheme, expected):
    browser = Browser(width, scheme)
    browser.click('#example')
    shown = browser.run('return memories.map(memory => memory.best)')
    for one, native in zip(shown, expected):
        for word, score in one:
            check(abs(score - native[word]) <= 1e-5, f'{word} has {score}, expected {native[word]}')
    answers = browser.run('return memories.map(memory => memory.answer.textContent)')
    check(answers[1:] == ['germany → berlin'] * 3, f'the answers are {answers}')
    check(browser.run('return document.documentElement.scrollWidth') <= width, 'the page is too wide')
    browser.picture(f'{width}-{scheme}.png')
    browser.run("document.getElementById('key').value = 'x'.repeat(60);"
                "document.getElementById('value').value = '\u6771'.repeat(60)")
    browser.click('#write button')
    check(browser.run("return document.getElementById('trouble').textContent") == '', 'long words are refused')
    browser.click('#forget')
    check(browser.run('return memories.every(memory => memory.best.length === 0)'), 'something is left')
    browser.close()


def main():
    lines = [[float(x) for x in line.split()] for line in scores.read_text().splitlines()]
    words = ['paris', 'rome', 'tokyo', 'bonn', 'nairobi', 'berlin', 'lima']
    expected = [dict(zip(words, line)) for line in lines[4:8]]  # the second question of the scenario
    pictures.mkdir(parents=True, exist_ok=True)
    driver = subprocess.Popen(['chromedriver', f'--port={port}'], stdout=subprocess.DEVNULL)
    try:
        for _ in range(100):
            try:
                if call('GET', '/status')['ready']:
                    break
            except OSError:
                time.sleep(0.1)
        for width in (1200, 400):
            for scheme in ('light', 'dark'):
                check_window(width, scheme, expected)
    finally:
        driver.terminate()
    print(f'4 windows: scores within 1e-5, pictures in {pictures}')


main()
