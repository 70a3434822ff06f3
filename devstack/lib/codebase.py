#!/usr/bin/env python3
"""Counts of the source tree, for docs/development/codebase.md.

    python3 devstack/lib/codebase.py [DIRECTORY]

Lines are lines that are not empty. Tests are what is below `tests`, `fuzz`, `benches`, `examples`
and `over_model`, files named `tests.rs` or `*_tests.rs`, and a file from its `#[cfg(test)] mod` on.
A circle is a set of files of one crate that import each other by `use` or by path, in both
directions. Imports of what the root of the crate re-exports do not count, and neither do tests.
"""

import collections
import os
import re
import sys

WORDS = ('nobody', 'whoever', 'somebody')
BUILT = ('target', 'node_modules')
TESTS = ('tests', 'benches', 'examples', 'over_model')


def files(root):
    for folder, folders, names in os.walk(root):
        folders[:] = [f for f in folders if f not in BUILT and not f.startswith('.git')]
        for name in names:
            path = os.path.join(folder, name)
            if os.path.islink(path):
                continue
            try:
                with open(path, encoding='utf-8') as opened:
                    yield os.path.relpath(path, root), opened.read()
            except UnicodeDecodeError:
                pass


def is_test(path):
    *folders, name = path.split('/')
    return (folders[:1] in (['tests'], ['fuzz']) or any(f in TESTS for f in folders)
            or re.search(r'(^|_)tests\.rs$', name) is not None)


def production(text):
    """The text in front of the module of tests."""
    found = re.search(r'^#\[cfg\(test\)\]\n(pub\(.*\) )?mod \w+ \{', text, re.M)
    return text[:found.start()] if found else text


def lines(text):
    return sum(1 for line in text.split('\n') if line.strip())


def paths_of(use):
    """`a::{b, c::d}` as lists of names."""
    found = []

    def read(before, text):
        parts, depth, part = [], 0, ''
        for c in text:
            depth += (c == '{') - (c == '}')
            if c == ',' and depth == 0:
                parts.append(part)
                part = ''
            else:
                part += c
        for one in [*parts, part]:
            one = one.strip()
            inner = re.match(r'^(.*?)\{(.*)\}$', one, re.S)
            if inner:
                read(before + [n for n in inner.group(1).strip().split('::') if n], inner.group(2))
            elif one:
                found.append(before + [n.strip() for n in one.split(' as ')[0].split('::')])

    read([], use)
    return found


def imports(module, text, modules):
    """The modules that a module names, without the root."""
    text = re.sub(r'//.*', '', production(text))
    named = [p for use in re.findall(r'\buse\s+([^;]+);', text) for p in paths_of(use)]
    rest = re.sub(r'\buse\s+[^;]+;', '', text)
    named += [p.split('::') for p in re.findall(r'\b(?:crate|super)(?:::\w+)+', rest)]
    for path in named:
        if path[0] == 'crate':
            full = path[1:]
        elif path[0] == 'self':
            full = [*module, *path[1:]]
        elif path[0] == 'super':
            ups = sum(1 for name in path if name == 'super')
            full = [*module[:-ups], *path[ups:]]
        elif (*module, path[0]) in modules:
            full = [*module, *path]
        else:
            continue
        while full and tuple(full) not in modules:
            full.pop()
        if full and tuple(full) != module:
            yield tuple(full)


def circles(graph):
    """The strongly connected parts, by Tarjan."""
    index, low, stack, found = {}, {}, [], []

    def visit(node):
        index[node] = low[node] = len(index)
        stack.append(node)
        for other in graph[node]:
            if other not in index:
                visit(other)
                low[node] = min(low[node], low[other])
            elif other in stack:
                low[node] = min(low[node], index[other])
        if low[node] == index[node]:
            part = []
            while not part or part[-1] != node:
                part.append(stack.pop())
            found.append(part)

    for node in list(graph):
        if node not in index:
            visit(node)
    return found


def largest_circle(crate):
    """The size of the largest circle of a crate: its sources by their paths below `src`."""
    modules = {}
    for path, text in crate.items():
        names = path.removesuffix('.rs').split('/')
        if not any(n in TESTS for n in names) and not is_test(path):
            modules[tuple(names[:-1] if names[-1] in ('mod', 'lib', 'main') else names)] = text
    graph = {m: sorted(set(imports(m, text, modules))) for m, text in modules.items()}
    return max((len(part) for part in circles(graph)), default=1)


def main():
    sys.setrecursionlimit(10_000)
    root = sys.argv[1] if len(sys.argv) > 1 else '.'
    counts, longest = collections.Counter(), 0
    crates = collections.defaultdict(dict)
    for path, text in files(root):
        for word in WORDS if os.path.basename(path) != os.path.basename(__file__) else ():
            counts[word] += len(re.findall(word, text, re.I))
        if not path.endswith('.rs'):
            continue
        counts['test functions'] += len(re.findall(r'^\s*#\[(?:tokio::)?test\b', text, re.M))
        before = '' if is_test(path) else production(text)
        counts['lines'] += lines(before)
        counts['lines of tests'] += lines(text) - lines(before)
        comments = [len(line) for line in text.split('\n') if line.lstrip().startswith('//')]
        counts['long comments'] += sum(1 for length in comments if length > 100)
        longest = max(longest, *comments, 0)
        crate, src, inner = path.rpartition('src/') if path.startswith('src/') else (
            path.partition('/src/'))
        if src:
            crates[crate][inner] = text
    by_size = sorted(((largest_circle(c), name) for name, c in crates.items()), reverse=True)
    print('lines of Rust without tests:', counts['lines'])
    print('lines of tests:', counts['lines of tests'])
    print('test functions:', counts['test functions'])
    print('words:', ', '.join('%s %d' % (word, counts[word]) for word in WORDS))
    print('longest comment line:', longest)
    print('comment lines over 100 columns:', counts['long comments'])
    print('largest circles:', ', '.join('%s %d' % (name, size) for size, name in by_size[:8]))


if __name__ == '__main__':
    main()
