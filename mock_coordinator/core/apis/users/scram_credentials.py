"""DescribeUserScramCredentials (key 50) and AlterUserScramCredentials (key 51), KIP-554.

A request alters each user at most once. Errors of one user do not affect the others.
"""

from __future__ import annotations

from typing import Final

from kip848_client.core.wire.messages.scram_credentials import (
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsRequestScramCredentialDeletion,
    AlterUserScramCredentialsRequestScramCredentialUpsertion,
    AlterUserScramCredentialsResponse,
    AlterUserScramCredentialsResponseAlterUserScramCredentialsResult,
    DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsResponse,
    DescribeUserScramCredentialsResponseCredentialInfo,
    DescribeUserScramCredentialsResponseDescribeUserScramCredentialsResult,
)
from kip848_client.error_codes import ErrorCode
from mock_coordinator.core.apis.call import ApiCall
from mock_coordinator.core.security.scram_store import SCRAM_MECHANISMS, ScramCredential, ScramStore

__all__ = ["alter_scram_credentials", "describe_scram_credentials"]

_Described = DescribeUserScramCredentialsResponseDescribeUserScramCredentialsResult
_Altered = AlterUserScramCredentialsResponseAlterUserScramCredentialsResult
_Deletion = AlterUserScramCredentialsRequestScramCredentialDeletion
_Upsertion = AlterUserScramCredentialsRequestScramCredentialUpsertion
_Problem = tuple[ErrorCode, str | None]

_TWICE: Final = (
    ErrorCode.DUPLICATE_RESOURCE,
    "A user credential cannot be altered twice in the same request",
)


def describe_scram_credentials(
    call: ApiCall[DescribeUserScramCredentialsRequest],
) -> DescribeUserScramCredentialsResponse:
    """Mechanisms and iterations of the users asked for; of all when none is named."""
    broker, request = call.broker, call.request
    store = broker.disk.scram
    asked = [user.name for user in request.users or ()]
    names = list(dict.fromkeys(asked)) if asked else list(store.users)
    results: list[_Described] = []
    for name in names:
        credentials = store.of(name)
        result = _Described(user=name)
        if asked.count(name) > 1:
            result.error_code = ErrorCode.DUPLICATE_RESOURCE
            result.error_message = (
                "Cannot describe SCRAM credentials for the same user twice in a single request: "
                f"{name}"
            )
        elif not credentials:
            result.error_code = ErrorCode.RESOURCE_NOT_FOUND
            result.error_message = (
                f"Attempt to describe a user credential that does not exist: {name}"
            )
        result.credential_infos = tuple(
            DescribeUserScramCredentialsResponseCredentialInfo(
                mechanism=each.mechanism, iterations=each.iterations
            )
            for each in (() if result.error_code else credentials)
        )
        results.append(result)
    return DescribeUserScramCredentialsResponse(results=tuple(results))


def alter_scram_credentials(
    call: ApiCall[AlterUserScramCredentialsRequest],
) -> AlterUserScramCredentialsResponse:
    """Set and remove credentials; the response has one row per user."""
    broker, request = call.broker, call.request
    store = broker.disk.scram
    problems: dict[str, _Problem] = {}
    deletions: dict[str, _Deletion] = {}
    upsertions: dict[str, _Upsertion] = {}
    for deletion in request.deletions:
        name = deletion.name
        problem = _TWICE if name in deletions else _deletion_problem(store, deletion)
        if problem is not None:
            problems.setdefault(name, problem)
        deletions[name] = deletion
    for upsertion in request.upsertions:
        name = upsertion.name
        twice = name in deletions or name in upsertions
        problem = _TWICE if twice else _upsertion_problem(upsertion)
        if problem is not None:
            problems.setdefault(name, problem)
        upsertions[name] = upsertion
    for name, deletion in deletions.items():
        if name not in problems:
            store.remove(name, deletion.mechanism)
    for name, upsertion in upsertions.items():
        if name not in problems:
            store.put(name, _credential(upsertion))
    return AlterUserScramCredentialsResponse(
        results=tuple(_altered(name, problems.get(name)) for name in {**upsertions, **deletions})
    )


def _altered(name: str, problem: _Problem | None) -> _Altered:
    code, message = (ErrorCode.NONE, None) if problem is None else problem
    return _Altered(user=name, error_code=code, error_message=message)


def _credential(upsertion: _Upsertion) -> ScramCredential:
    return ScramCredential.from_salted_password(
        upsertion.mechanism, upsertion.iterations, upsertion.salt, upsertion.salted_password
    )


def _user_problem(name: str, mechanism: int) -> _Problem | None:
    if not name:
        return ErrorCode.UNACCEPTABLE_CREDENTIAL, "Username must not be empty"
    if mechanism not in SCRAM_MECHANISMS:
        return ErrorCode.UNSUPPORTED_SASL_MECHANISM, "Unknown SCRAM mechanism"
    return None


def _deletion_problem(store: ScramStore, deletion: _Deletion) -> _Problem | None:
    problem = _user_problem(deletion.name, deletion.mechanism)
    if problem is None and store.get(deletion.name, deletion.mechanism) is None:
        text = "Attempt to delete a user credential that does not exist"
        return ErrorCode.RESOURCE_NOT_FOUND, text
    return problem


def _upsertion_problem(upsertion: _Upsertion) -> _Problem | None:
    problem = _user_problem(upsertion.name, upsertion.mechanism)
    if problem is not None:
        return problem
    mechanism = SCRAM_MECHANISMS[upsertion.mechanism]
    if upsertion.iterations < mechanism.min_iterations:
        return ErrorCode.UNACCEPTABLE_CREDENTIAL, "Too few iterations"
    if upsertion.iterations > mechanism.max_iterations:
        return ErrorCode.UNACCEPTABLE_CREDENTIAL, "Too many iterations"
    if not upsertion.salted_password:  # Java's HMAC takes no empty key
        return ErrorCode.UNKNOWN_SERVER_ERROR, None
    return None
