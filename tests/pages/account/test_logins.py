"""Logins of the pages ride on django-redis: in Redis with an expiry, in no row of SQL, and gone when they are ended."""

from __future__ import annotations

from django.conf import settings
from django.contrib.sessions.models import Session
from django.core.cache import cache
from django.test import Client
from django_redis import get_redis_connection

KEY = "django.contrib.sessions.cache"


def login(user_of) -> Client:
    user_of("viewer", "ann")
    return again(Client())


def again(client: Client) -> Client:
    assert client.login(username="ann", password="let me in")
    return client


def kept(client: Client) -> str:
    return KEY + client.session.session_key


def test_a_login_is_a_key_in_redis_with_an_expiry_and_a_row_nowhere(user_of, prefix):
    client = login(user_of)
    assert cache.get(kept(client))["_auth_user_id"] == client.session["_auth_user_id"]
    redis = get_redis_connection()
    names = [found.decode() for found in redis.scan_iter(match="*")]
    (key,) = [name for name in names if name == cache.make_key(kept(client))]
    assert not any(client.session.session_key in name for name in names), "a name of a key would be a cookie"
    assert 0 < redis.pttl(key) <= settings.SESSION_COOKIE_AGE * 1000
    assert not Session.objects.exists()


def test_its_end_is_the_key_s_end(user_of, prefix):
    client = login(user_of)
    assert client.get("/account/").status_code == 200
    cache.delete(kept(client))
    assert client.get("/account/").url.startswith("/accounts/login/")
    key = kept(again(client))
    assert cache.get(key)
    client.post("/accounts/logout/")
    assert cache.get(key) is None
