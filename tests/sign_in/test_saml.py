"""Sign-in by SAML: metadata for the provider, and responses that it signed, or somebody else, or nobody asked for."""

from __future__ import annotations

import base64
import re
import threading
import zlib
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.x509.oid import NameOID
from onelogin.saml2.utils import OneLogin_Saml2_Utils as Saml

pytestmark = pytest.mark.faults

ENTITY = "https://idp.acme.example/"
METADATA = """<EntityDescriptor xmlns="urn:oasis:names:tc:SAML:2.0:metadata" entityID="{entity}">
<IDPSSODescriptor protocolSupportEnumeration="urn:oasis:names:tc:SAML:2.0:protocol"><KeyDescriptor use="signing">
<KeyInfo
 xmlns="http://www.w3.org/2000/09/xmldsig#"><X509Data><X509Certificate>{certificate}</X509Certificate></X509Data>
</KeyInfo></KeyDescriptor><SingleSignOnService Binding="urn:oasis:names:tc:SAML:2.0:bindings:HTTP-Redirect"
Location="https://idp.acme.example/sso"/></IDPSSODescriptor></EntityDescriptor>"""
RESPONSE = """<samlp:Response xmlns:samlp="urn:oasis:names:tc:SAML:2.0:protocol" ID="r-{number}" Version="2.0"
 IssueInstant="{now}" Destination="{acs}"{answers}><saml:Issuer
 xmlns:saml="urn:oasis:names:tc:SAML:2.0:assertion">{entity}</saml:Issuer
><samlp:Status><samlp:StatusCode Value="urn:oasis:names:tc:SAML:2.0:status:Success"/></samlp:Status>
{assertion}</samlp:Response>"""
ASSERTION = """<saml:Assertion xmlns:saml="urn:oasis:names:tc:SAML:2.0:assertion" ID="a-{number}" Version="2.0"
 IssueInstant="{now}"><saml:Issuer>{entity}</saml:Issuer><saml:Subject><saml:NameID
 Format="urn:oasis:names:tc:SAML:2.0:nameid-format:persistent">{person}</saml:NameID><saml:SubjectConfirmation
 Method="urn:oasis:names:tc:SAML:2.0:cm:bearer"><saml:SubjectConfirmationData NotOnOrAfter="{end}"
 Recipient="{acs}"{answers}/>
</saml:SubjectConfirmation></saml:Subject><saml:Conditions NotBefore="{start}"
 NotOnOrAfter="{end}"><saml:AudienceRestriction>
<saml:Audience>{audience}</saml:Audience></saml:AudienceRestriction></saml:Conditions><saml:AuthnStatement
 AuthnInstant="{now}"
 SessionIndex="s-{number}"><saml:AuthnContext><saml:AuthnContextClassRef>urn:oasis:names:tc:SAML:2.0:ac:classes:Password
</saml:AuthnContextClassRef></saml:AuthnContext></saml:AuthnStatement><saml:AttributeStatement><saml:Attribute
 Name="groups">
<saml:AttributeValue>ops</saml:AttributeValue><saml:AttributeValue>lunch</saml:AttributeValue></saml:Attribute><saml:Attribute
 Name="urn:oid:0.9.2342.19200300.100.1.3"><saml:AttributeValue>{person}@acme.example</saml:AttributeValue></saml:Attribute>
</saml:AttributeStatement></saml:Assertion>"""


def make_keys() -> tuple[str, str]:
    """A private key, and a certificate for it."""
    key = rsa.generate_private_key(65537, 2048)
    name, now = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "idp")]), datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder(name, name, key.public_key(), 1, now - timedelta(days=1), now + timedelta(days=1))
    ).sign(key, hashes.SHA256())
    plain = serialization.NoEncryption()
    private = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.TraditionalOpenSSL, plain)
    return private.decode(), certificate.public_bytes(serialization.Encoding.PEM).decode()


class Metadata(BaseHTTPRequestHandler):
    def __init__(self, text: str, *connection: Any) -> None:
        self.text = text
        super().__init__(*connection)

    def do_GET(self) -> None:
        self.send_response(200)
        self.end_headers()
        self.wfile.write(self.text.encode())

    def log_message(self, *said: Any) -> None:
        pass


def describe(certificate: str) -> str:
    return METADATA.format(entity=ENTITY, certificate="".join(certificate.splitlines()[1:-1]))


@pytest.fixture(scope="module")
def keys() -> tuple[str, str]:
    return make_keys()


@pytest.fixture(scope="module")
def site(start_site: Callable, keys: tuple[str, str]) -> Iterator[Any]:
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Metadata, describe(keys[1]))) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        with start_site(
            SIGNALBOX_SIGN_IN="saml",
            SIGNALBOX_SAML_METADATA=f"http://127.0.0.1:{server.server_port}/",
            SIGNALBOX_SAML_ENTITY=ENTITY,
            SIGNALBOX_SIGN_IN_GROUPS="ops=operator",
        ) as site:
            yield site
        server.shutdown()


def ask(person: Any) -> str:
    """Begin to sign in; return the id of the request that goes to the provider."""
    answer = person.post("/accounts/saml/sso/login/?process=login", page="/accounts/login/")
    sent = parse_qs(urlsplit(answer.headers["Refresh"].partition("url=")[2]).query)["SAMLRequest"][0]
    return re.search(r'ID="([^"]+)"', zlib.decompress(base64.b64decode(sent), -15).decode())[1]


def answer(person: Any, keys: tuple[str, str], request: str, number: int, late: int = 0) -> Any:
    """Send what a provider with these keys says to a request."""
    now, form = datetime.now(UTC) - timedelta(seconds=late), "%Y-%m-%dT%H:%M:%SZ"
    url = f"{person.site.url}/accounts/saml/sso"
    facts = {
        "now": now.strftime(form), "start": (now - timedelta(minutes=1)).strftime(form),
        "end": (now + timedelta(minutes=5)).strftime(form), "acs": f"{url}/acs/", "audience": f"{url}/metadata/",
        "entity": ENTITY, "number": number, "person": f"sam-{number}",
        "answers": f' InResponseTo="{request}"' if request else "",
    }  # fmt: skip
    signed = Saml.add_sign(ASSERTION.format(**facts), keys[0], keys[1])
    signed = signed.decode() if isinstance(signed, bytes) else signed
    text = RESPONSE.format(**facts, assertion=re.sub(r"<\?xml.*?\?>", "", signed))
    encoded = base64.b64encode(text.encode()).decode()
    return person.client.post("/accounts/saml/sso/acs/", data={"SAMLResponse": encoded})


def test_the_provider_reads_where_to_send_answers(site, another):
    text = another(site).get("/accounts/saml/sso/metadata/").text
    assert f'Location="{site.url}/accounts/saml/sso/acs/"' in text


def test_a_signed_response_to_our_request_logs_in_with_its_groups(site, another, keys):
    person = another(site)
    assert answer(person, keys, ask(person), 1).url.path == "/"
    assert person.is_logged_in()
    ((name,),) = site.read("select username from auth_user where email = 'sam-1@acme.example'")
    assert site.groups_of(name) == {"operator"}


@pytest.mark.parametrize(
    ("how", "reason"),
    [("another key", "Signature validation failed"), ("unasked", "unknown"), ("late", "expired"), ("repeated", "")],
)
def test_no_other_response_does(site, another, keys, how, reason):
    person = another(site)
    request = ask(person)
    if how == "another key":
        got = answer(person, make_keys(), request, 2)
    elif how == "unasked":
        got = answer(person, keys, "", 3)
    elif how == "late":
        got = answer(person, keys, request, 4, late=3600)
    else:
        answer(person, keys, request, 5)
        person = another(site)
        got = answer(person, keys, request, 5)
    assert got.status_code == (403 if how == "repeated" else 401), got.text
    assert not person.is_logged_in()
    assert reason in site.audit("identity provider")[-1][2]


def test_what_no_provider_sends_gets_a_page(site, another):
    person = another(site)
    deflated = base64.b64encode(zlib.compress(b"no xml")[2:-4]).decode()
    for text in ("bm8geG1s", "no base64!", deflated, ""):
        got = person.client.post("/accounts/saml/sso/acs/", data={"SAMLResponse": text})
        assert got.status_code in (400, 401), text
        for name in ("SAMLRequest", "SAMLResponse"):
            got = person.client.get("/accounts/saml/sso/sls/", params={name: text})
            assert got.status_code == 400, (name, text)
    log = (site.home / "log").read_text()
    assert "Traceback" not in log
    assert "no usable answer" not in log


@pytest.fixture(scope="module")
def changing(start_site: Callable) -> Iterator[tuple[Any, list[str]]]:
    """A site, and the metadata of its provider."""
    held = [""]

    class Changing(Metadata):
        def __init__(self, *connection: Any) -> None:
            super().__init__(held[0], *connection)

    with ThreadingHTTPServer(("127.0.0.1", 0), Changing) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        address = f"http://127.0.0.1:{server.server_port}/"
        with start_site(
            SIGNALBOX_SIGN_IN="saml",
            SIGNALBOX_SAML_METADATA=address,
            SIGNALBOX_SAML_ENTITY=ENTITY,
            SIGNALBOX_SIGN_IN_GROUPS="ops=operator",
        ) as site:
            yield site, held
        server.shutdown()


def test_metadata_that_is_none_gets_a_page(changing, another, keys):
    site, held = changing
    person, good = another(site), describe(keys[1])
    texts = ["", "not xml", "<html><p>404</html>", good[:400], '<!DOCTYPE x [<!ENTITY a "b">]><x>&a;</x>']
    for held[0] in [*texts, good.replace(ENTITY, "https://another.example/")]:
        got = person.post("/accounts/saml/sso/login/?process=login", page="/accounts/login/")
        assert (got.status_code, "SB719" in got.text) == (503, True), held[0]
        assert person.get("/accounts/saml/sso/metadata/").status_code == 503
    held[0] = good
    assert ask(person), "what was none is not kept"
    assert "Traceback" not in (site.home / "log").read_text()
    assert person.log_in("ann").url.path == "/"


def test_a_certificate_that_was_replaced_counts_from_the_second_sign_in(changing, another, keys):
    site, held = changing
    for expected, (private, certificate) in (((200,), keys), ((401, 200), make_keys())):
        held[0] = describe(certificate)
        person = another(site)
        found = [answer(person, (private, certificate), ask(person), 7) for _ in expected]
        assert tuple(got.status_code for got in found) == expected
        assert person.is_logged_in()
