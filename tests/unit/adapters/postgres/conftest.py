"""A real server for the tests of this folder."""

from tests.support.postgres import postgres_server

__all__ = ["postgres_server"]  # a fixture by being here
