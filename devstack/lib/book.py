#!/usr/bin/env python3
"""Preprocessor of mdBook for docs/, and the check of its output.

    book.py supports RENDERER   mdBook asks; every renderer is fine
    book.py                     reads mdBook's JSON from standard input, writes the changed book
    book.py check DIRECTORY     fails if a link of the HTML there has no target

Links in docs/ are written for a forge: they may leave the folder, and the index of a folder is
README.md. In the book a Markdown page outside of docs/ that is linked becomes a chapter of the last
part. A link to any other file of the repository becomes its text.
"""

import html.parser
import json
import os
import posixpath
import re
import sys
import urllib.parse

LINK = re.compile(r'(!?\[(?:[^\[\]`]|`[^`]*`|!?\[[^\]]*\]\([^)]*\))*\])\(([^)\s]+)\)', re.S)
FENCE = re.compile(r'^ *(```|~~~)')
OUTSIDE = 'repository'


def is_external(url):
    return re.match(r'[a-z][a-z0-9+.-]*:|//', url) is not None


class Pages:
    """The pages of the book and those they reach, by their path in the repository."""

    def __init__(self, root):
        self.root = root
        self.waiting = []
        self.outside = {}

    def in_book(self, path):
        """Where a Markdown page of the repository is in the book, with its name as a chapter."""
        if path.startswith('docs/'):
            place = path[len('docs/'):]
        else:
            place = posixpath.join(OUTSIDE, path)
            if path not in self.outside:
                self.outside[path] = None
                self.waiting.append(path)
        if posixpath.basename(place) == 'README.md':
            place = posixpath.join(posixpath.dirname(place), 'index.md')
        return place

    def link(self, page, text, url):
        """A link of a page as the book has it."""
        if is_external(url) or url.startswith('#'):
            return '%s(%s)' % (text, url)
        path, _, anchor = url.partition('#')
        path = posixpath.normpath(posixpath.join(posixpath.dirname(page), path))
        if path.endswith('.md') and os.path.isfile(os.path.join(self.root, path)):
            if path == 'docs/SUMMARY.md':
                return text[1:-1]
            here = posixpath.dirname(self.in_book(page))
            target = posixpath.relpath(self.in_book(path), here or '.')
            return '%s(%s%s)' % (text, target, '#' + anchor if anchor else '')
        if path.startswith('docs/') and os.path.isfile(os.path.join(self.root, path)):
            return '%s(%s)' % (text, url)
        return text[1:-1] if text.startswith('[') else text[2:-1]

    def rewrite(self, page, text):
        """The text of a page with its links, but not those in blocks of code."""
        parts, fenced = [[False, []]], False
        for line in text.split('\n'):
            fence = FENCE.match(line) is not None
            inside = fenced or fence
            fenced = fenced != fence
            if parts[-1][0] != inside:
                parts.append([inside, []])
            parts[-1][1].append(line)
        done = []
        for code, lines in parts:
            part = '\n'.join(lines)
            done.append(part if code else LINK.sub(
                lambda found: self.link(page, found.group(1), found.group(2)), part))
        return '\n'.join(done)


def title_of(text, path):
    found = re.search(r'^# (.+)$', text, re.M)
    return found.group(1) if found else path


def change(pages, items):
    for item in items:
        chapter = item.get('Chapter') if isinstance(item, dict) else None
        if chapter is None:
            continue
        if chapter.get('source_path'):
            page = posixpath.join('docs', chapter['source_path'])
            chapter['content'] = pages.rewrite(page, chapter['content'])
        change(pages, chapter['sub_items'])


def preprocess():
    context, book = json.load(sys.stdin)
    pages = Pages(os.path.dirname(os.path.abspath(context['root'])))
    items = book['items'] if 'items' in book else book['sections']
    change(pages, items)
    while pages.waiting:
        path = pages.waiting.pop(0)
        with open(os.path.join(pages.root, path), encoding='utf-8') as file:
            text = file.read()
        pages.outside[path] = (title_of(text, path), pages.rewrite(path, text))
    if pages.outside:
        items.append({'PartTitle': 'Pages of the repository'})
    for path in sorted(pages.outside, key=lambda path: (path.count('/'), path)):
        name, text = pages.outside[path]
        items.append({'Chapter': {
            'name': name, 'content': text, 'number': None, 'sub_items': [],
            'path': pages.in_book(path), 'source_path': None, 'parent_names': []}})
    json.dump(book, sys.stdout)


class Links(html.parser.HTMLParser):
    """The links and the anchors of a page."""

    def __init__(self):
        super().__init__()
        self.links, self.anchors = [], set()

    def handle_starttag(self, tag, attrs):
        attrs = dict(attrs)
        self.anchors.update(attrs[key] for key in ('id', 'name') if attrs.get(key))
        for key in ('href', 'src'):
            if attrs.get(key):
                self.links.append((self.getpos()[0], attrs[key]))


def read(path):
    parser = Links()
    with open(path, encoding='utf-8') as file:
        parser.feed(file.read())
    return parser


def check(directory):
    pages = {}
    for at, _, names in os.walk(directory):
        for name in names:
            if name.endswith('.html') and name not in ('404.html', 'print.html', 'toc.html'):
                path = os.path.join(at, name)
                pages[path] = read(path)
    checked, bad = 0, []
    for path, page in sorted(pages.items()):
        for line, url in page.links:
            if is_external(url):
                continue
            checked += 1
            file, _, anchor = urllib.parse.unquote(url).partition('#')
            target = os.path.normpath(os.path.join(os.path.dirname(path), file)) if file else path
            if os.path.isdir(target):
                target = os.path.join(target, 'index.html')
            known = os.path.isfile(target)
            if known and anchor and target in pages:
                known = anchor in pages[target].anchors
            if not known:
                bad.append('%s:%d: %s' % (path, line, url))
    if bad:
        sys.exit('links of the book without a target:\n' + '\n'.join(bad))
    if not checked:
        sys.exit('book.py: there is no link to check in %s' % directory)
    print('%d pages, %d links, all with a target' % (len(pages), checked))


def main():
    if len(sys.argv) == 3 and sys.argv[1] == 'supports':
        return
    if len(sys.argv) == 3 and sys.argv[1] == 'check':
        check(sys.argv[2])
    elif len(sys.argv) == 1:
        preprocess()
    else:
        sys.exit(__doc__)


if __name__ == '__main__':
    main()
