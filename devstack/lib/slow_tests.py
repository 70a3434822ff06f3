"""The test binaries and the tests that took longest, from the JUnit file that cargo-nextest writes.

    slow_tests.py FILE [COUNT]
"""
import sys
import xml.etree.ElementTree


def main(path, count=15):
    # (seconds, test binary, test)
    tests = [
        (float(case.get("time", 0)), suite.get("name"), case.get("name"))
        for suite in xml.etree.ElementTree.parse(path).getroot().iter("testsuite")
        for case in suite.iter("testcase")
    ]
    if not tests:
        sys.exit(f"slow_tests.py: {path} names no test")
    binaries = {}
    for seconds, binary, _ in tests:
        binaries[binary] = binaries.get(binary, 0) + seconds
    print(f"\nSum of {len(tests)} tests: {sum(t[0] for t in tests):.0f} s. Binaries that took longest:")
    for binary, seconds in sorted(binaries.items(), key=lambda item: -item[1])[:count]:
        print(f"{seconds:7.0f} s  {binary}")
    print("Tests that took longest:")
    for seconds, binary, test in sorted(tests, reverse=True)[:count]:
        print(f"{seconds:7.0f} s  {binary} {test}")


if __name__ == "__main__":
    main(sys.argv[1], *map(int, sys.argv[2:]))
