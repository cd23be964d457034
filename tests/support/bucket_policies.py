"""S3's policies in front of moto's S3: what a role may not do, the bucket answers with 403.

moto's own evaluator reads no conditions, and the policies of deploy/roles rest on them. This one does, for
the actions, conditions and operators that are used there, and refuses to guess about any other.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, unquote

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

ADMINISTRATOR = "administrator"
_DENIED = b"<Error><Code>AccessDenied</Code><Message>Access Denied</Message></Error>"

Context = dict[str, "str | None"]


def is_allowed(policies: Sequence[Mapping[str, Any]], action: str, resource: str, context: Context) -> bool:
    """Decide as IAM does: some statement allows it, and none denies it."""
    effects = {
        statement["Effect"]
        for policy in policies
        for statement in policy["Statement"]
        if _applies(statement, action, resource, context)
    }
    return effects == {"Allow"}


def read_policy(text: str, **places: str) -> dict[str, Any]:
    """Return a policy, with its placeholders replaced."""
    for name, value in places.items():
        text = re.sub(rf"\b{name}\b", value, text)
    policy: dict[str, Any] = json.loads(text)
    return policy


class Policed:
    """An application of S3 behind policies, chosen by the access key of each request.

    Parameters
    ----------
    application : callable
    roles : mapping
        Policies by access key.
    bucket_policy : mapping
        Holds for everybody but the `ADMINISTRATOR`; its own allowances are not looked at.
    """

    def __init__(
        self,
        application: Callable[..., Iterable[bytes]],
        roles: Mapping[str, Mapping[str, Any]],
        bucket_policy: Mapping[str, Any],
    ) -> None:
        self.application = application
        self.roles = roles
        self.bucket_policy = bucket_policy
        self.denied: list[tuple[str, str, str]] = []

    def __call__(self, environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        signed = re.search(r"Credential=([^/]+)/", environ.get("HTTP_AUTHORIZATION", ""))
        who = signed[1] if signed else "nobody"
        if who == ADMINISTRATOR:
            return self.application(environ, start_response)
        policies = [self.roles[who], self.bucket_policy] if who in self.roles else []
        action, resource, context = _request(environ)
        if is_allowed(policies, action, resource, context):
            return self.application(environ, start_response)
        self.denied.append((who, action, resource))
        start_response("403 Forbidden", [("Content-Type", "application/xml")])
        return [_DENIED]


def _request(environ: Mapping[str, Any]) -> tuple[str, str, Context]:
    """Return the action, the resource and the condition keys of a request."""
    bucket, _, key = unquote(environ["PATH_INFO"]).lstrip("/").partition("/")
    query = parse_qs(environ.get("QUERY_STRING", ""), keep_blank_values=True)
    method = environ["REQUEST_METHOD"]
    context: Context = {"aws:SecureTransport": "true"}  # it stands for a server behind TLS
    if not key and method == "GET":
        context["s3:prefix"] = query.get("prefix", [""])[0]
        return "s3:ListBucket", f"arn:aws:s3:::{bucket}", context
    names = {"GET": "GetObject", "HEAD": "GetObject", "PUT": "PutObject", "DELETE": "DeleteObject"}
    context["s3:if-none-match"] = environ.get("HTTP_IF_NONE_MATCH")
    action = names.get(method, "NotKnownHere")
    return f"s3:{action}", f"arn:aws:s3:::{bucket}/{key}", context


def _applies(statement: Mapping[str, Any], action: str, resource: str, context: Context) -> bool:
    return (
        _matches(statement["Action"], action)
        and _matches(statement["Resource"], resource)
        and all(
            _holds(operator, key, wanted, context)
            for operator, tests in statement.get("Condition", {}).items()
            for key, wanted in tests.items()
        )
    )


def _holds(operator: str, key: str, wanted: str | list[str], context: Context) -> bool:
    actual = context.get(key)
    if operator == "Null":
        return (actual is None) == (wanted == "true")
    if operator == "Bool":
        return actual == wanted
    if operator == "StringLike":
        return actual is not None and _matches(wanted, actual)
    message = f"no operator {operator} is known here"
    raise NotImplementedError(message)


def _matches(patterns: str | list[str], text: str) -> bool:
    """Tell whether any pattern fits: a star stands for anything, slashes too."""
    listed = [patterns] if isinstance(patterns, str) else patterns
    return any(
        re.fullmatch(".*".join(map(re.escape, pattern.split("*"))), text, re.DOTALL) for pattern in listed
    )
