"""Exceptions that the client may rebuild (allowed_remote_exmods), made like Nova's."""


class NoHost(Exception):
    def __init__(self, message=None, **kwargs):
        self.kwargs = kwargs
        self.kwargs.setdefault("code", 500)
        super().__init__(message or "No host was found. %(reason)s" % kwargs)
