"""AsyncEngine has what Engine has: names, arguments, docstrings; and says what it has not."""

from __future__ import annotations

import ast
import asyncio
import inspect
import subprocess
import sys

import pytest

from machines.engine import AsyncEngine, BadInput, Engine
from machines.engine.aio import async_engine
from machines.engine.aio.calls import LEFT_OUT
from tests.cases import for_each
from tests.engine.aio import method_generator
from tests.engine.builders import ROOT, door

PUBLIC = sorted(name for name in dir(Engine) if not name.startswith("_"))


def test_the_generated_module_is_what_engine_says_now():
    written = ast.dump(ast.parse(method_generator.PATH.read_text(encoding="utf-8")))
    assert written == ast.dump(ast.parse(method_generator.generate())), (
        "run: python -m tests.engine.aio.method_generator"
    )


@for_each("name", PUBLIC)
def test_each_public_method_is_there_with_its_arguments_and_docstring(name):
    if name in LEFT_OUT:
        assert not hasattr(AsyncEngine, name)
        return
    plain, awaited = getattr(Engine, name), getattr(AsyncEngine, name)
    assert inspect.signature(plain).parameters == inspect.signature(awaited).parameters
    assert inspect.getdoc(awaited)
    if name == "from_url":
        return
    assert inspect.getdoc(plain) == inspect.getdoc(awaited)
    returned = inspect.signature(plain).return_annotation
    if inspect.iscoroutinefunction(awaited):
        assert inspect.signature(awaited).return_annotation == returned
    else:  # an object with calls of its own: each is awaited
        part = getattr(async_engine, inspect.signature(awaited).return_annotation)
        methods = [value for key, value in vars(part).items() if not key.startswith("_")]
        assert methods
        assert all(map(inspect.iscoroutinefunction, methods))


@for_each("name", sorted(LEFT_OUT))
def test_what_is_left_out_says_what_to_use(name):
    with pytest.raises(AttributeError, match=f"no attribute '{name}'; "):
        getattr(AsyncEngine.from_url("redis://localhost:1"), name)


def test_a_wrong_name_gets_a_hint():
    with pytest.raises(AttributeError, match="did you mean 'fire_many'"):
        AsyncEngine.from_url("redis://localhost:1").fire_mony  # noqa: B018


@pytest.mark.parametrize("url", ["http://localhost", "redis+cluster://a,,b", "redis://localhost:port"])
def test_a_bad_url_is_refused_at_once(url):
    with pytest.raises(BadInput):
        AsyncEngine.from_url(url)


def test_a_url_belongs_into_from_url():
    with pytest.raises(TypeError, match=r"AsyncEngine\.from_url\(url\)"):
        AsyncEngine("redis://localhost")


def test_another_loop_is_refused(redis_url, prefix):
    engine = AsyncEngine.from_url(redis_url, prefix=prefix)

    async def use():
        await engine.publish(door())

    asyncio.run(use())
    with pytest.raises(RuntimeError, match="belongs to another event loop"):
        asyncio.run(use())


async def test_a_closed_engine_says_so(redis_url, prefix):
    async with AsyncEngine.from_url(redis_url, prefix=prefix) as engine:
        await engine.publish(door())
    with pytest.raises(RuntimeError, match="is closed"):
        await engine.machines()


async def test_an_engine_of_threads_may_be_made_in_a_running_loop(redis_url, prefix):
    engine = Engine.from_url(redis_url, prefix=prefix)
    assert engine.publish(door()).name == "door"
    assert await asyncio.to_thread(engine.machines) == {"door": 1}
    engine.client.close()


@pytest.mark.parametrize("package", ["greenlet", "hiredis"])
def test_without_a_package_the_rest_works_and_the_error_says_what_to_install(package):
    code = f"""
import sys
sys.modules["{package}"] = None
from machines.engine import AsyncEngine, Engine
Engine.from_url("redis://localhost:1")
AsyncEngine.from_url("redis://localhost:1")
"""
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False)
    assert f"ImportError: AsyncEngine needs the package {package}: pip install {package}" in done.stderr
