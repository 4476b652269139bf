"""Rules for the cluster itself: its operations, replicas, quotas, users, ACLs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final

from kip848_client.core.wire._fields import Message
from kip848_client.core.wire.messages.acls import (
    CreateAclsResponse,
    CreateAclsResponseAclCreationResult,
    DeleteAclsResponse,
    DeleteAclsResponseDeleteAclsFilterResult,
    DescribeAclsResponse,
)
from kip848_client.core.wire.messages.client_quotas import (
    AlterClientQuotasResponse,
    AlterClientQuotasResponseEntityData,
    AlterClientQuotasResponseEntryData,
    DescribeClientQuotasResponse,
)
from kip848_client.core.wire.messages.replicas import (
    AlterPartitionReassignmentsResponse,
    AlterPartitionReassignmentsResponseReassignablePartitionResponse,
    AlterPartitionReassignmentsResponseReassignableTopicResponse,
    ElectLeadersResponse,
    ElectLeadersResponsePartitionResult,
    ElectLeadersResponseReplicaElectionResult,
    ListPartitionReassignmentsResponse,
)
from kip848_client.core.wire.messages.scram_credentials import (
    AlterUserScramCredentialsResponse,
    AlterUserScramCredentialsResponseAlterUserScramCredentialsResult,
    DescribeUserScramCredentialsResponse,
    DescribeUserScramCredentialsResponseDescribeUserScramCredentialsResult,
)
from kip848_client.error_codes import ErrorCode, default_message
from mock_coordinator.core.authorization.requester import (
    ADMITTED,
    Admission,
    Admitted,
    AuthorizationRule,
    Denied,
    Requester,
)
from mock_coordinator.core.security.acls import Operation, ResourceType
from mock_coordinator.core.state.broker import NO_OPERATIONS

__all__ = [
    "admit_alter_client_quotas",
    "admit_alter_partition_reassignments",
    "admit_alter_user_scram_credentials",
    "admit_create_acls",
    "admit_delete_acls",
    "admit_describe_acls",
    "admit_describe_client_quotas",
    "admit_describe_cluster",
    "admit_describe_user_scram_credentials",
    "admit_elect_leaders",
    "admit_list_partition_reassignments",
]

_DENIED: Final = ErrorCode.CLUSTER_AUTHORIZATION_FAILED

_Refusal = Callable[[Any, str], Message]
"""(request, the broker's words) -> the response that refuses it."""


def _needs(operation: Operation, refusal: _Refusal) -> AuthorizationRule:
    """The rule of a request that needs one right on the cluster."""

    def rule(requester: Requester, request: Any) -> Admission:
        if requester.may_cluster(operation):
            return ADMITTED
        form = requester.broker.profile.refused_request_form
        # a broker prints its request object here, addresses and buffers included
        words = f"Request {type(request).__name__} {form.format(operation.name)}"
        return Denied(refusal(request, words))

    return rule


def admit_describe_cluster(requester: Requester, request: Any) -> Admission:
    """Everybody may; the authorized operations are 0 without DESCRIBE."""

    def complete(response: Any) -> Any:
        if response.error_code:
            return response
        bits = NO_OPERATIONS
        if request.include_cluster_authorized_operations:
            described = requester.may_cluster(Operation.DESCRIBE)
            bits = requester.operations(ResourceType.CLUSTER) if described else 0
        return replace(response, cluster_authorized_operations=bits)

    return Admitted(None, complete)


def _elections(request: Any, words: str) -> Message:
    return ElectLeadersResponse(
        error_code=_DENIED,
        replica_election_results=tuple(
            ElectLeadersResponseReplicaElectionResult(
                topic=topic.topic,
                partition_result=tuple(
                    ElectLeadersResponsePartitionResult(
                        partition_id=index, error_code=_DENIED, error_message=words
                    )
                    for index in topic.partitions
                ),
            )
            for topic in request.topic_partitions or ()
        ),
    )


def _reassignments(request: Any, words: str) -> Message:
    return AlterPartitionReassignmentsResponse(
        error_code=_DENIED,
        error_message=words,
        responses=tuple(
            AlterPartitionReassignmentsResponseReassignableTopicResponse(
                name=topic.name,
                partitions=tuple(
                    AlterPartitionReassignmentsResponseReassignablePartitionResponse(
                        partition_index=partition.partition_index,
                        error_code=_DENIED,
                        error_message=words,
                    )
                    for partition in topic.partitions
                ),
            )
            for topic in request.topics
        ),
    )


def _quotas(request: Any, _words: str) -> Message:
    return AlterClientQuotasResponse(
        entries=tuple(
            AlterClientQuotasResponseEntryData(
                error_code=_DENIED,
                error_message=default_message(_DENIED),
                entity=tuple(
                    AlterClientQuotasResponseEntityData(
                        entity_type=part.entity_type, entity_name=part.entity_name
                    )
                    for part in entry.entity
                ),
            )
            for entry in request.entries
        )
    )


def _described_users(request: Any, _words: str) -> Message:
    """A single nameless result stands for them all."""
    del request
    result = DescribeUserScramCredentialsResponseDescribeUserScramCredentialsResult(
        error_code=_DENIED, error_message=None
    )
    return DescribeUserScramCredentialsResponse(
        error_code=_DENIED, error_message=None, results=(result,)
    )


def _altered_users(request: Any, words: str) -> Message:
    names = dict.fromkeys(each.name for each in (*request.deletions, *request.upsertions))
    return AlterUserScramCredentialsResponse(
        results=tuple(
            AlterUserScramCredentialsResponseAlterUserScramCredentialsResult(
                user=name, error_code=_DENIED, error_message=words
            )
            for name in names
        )
    )


def _created_acls(request: Any, words: str) -> Message:
    result = CreateAclsResponseAclCreationResult(error_code=_DENIED, error_message=words)
    return CreateAclsResponse(results=(result,) * len(request.creations))


def _deleted_acls(request: Any, words: str) -> Message:
    result = DeleteAclsResponseDeleteAclsFilterResult(error_code=_DENIED, error_message=words)
    return DeleteAclsResponse(filter_results=(result,) * len(request.filters))


def _plainly(response: type[Any], **fields: Any) -> _Refusal:
    """A refusal of fixed fields, without words."""
    return lambda _request, _words: response(error_code=_DENIED, **fields)


def _with_words(response: type[Any], **fields: Any) -> _Refusal:
    return lambda _request, words: response(error_code=_DENIED, error_message=words, **fields)


admit_describe_acls: Final = _needs(Operation.DESCRIBE, _with_words(DescribeAclsResponse))
admit_create_acls: Final = _needs(Operation.ALTER, _created_acls)
admit_delete_acls: Final = _needs(Operation.ALTER, _deleted_acls)
admit_elect_leaders: Final = _needs(Operation.ALTER, _elections)
admit_alter_partition_reassignments: Final = _needs(Operation.ALTER, _reassignments)
admit_list_partition_reassignments: Final = _needs(
    Operation.DESCRIBE, _with_words(ListPartitionReassignmentsResponse)
)
admit_describe_client_quotas: Final = _needs(
    Operation.DESCRIBE_CONFIGS,
    _plainly(DescribeClientQuotasResponse, error_message=None, entries=None),
)
admit_alter_client_quotas: Final = _needs(Operation.ALTER_CONFIGS, _quotas)
admit_describe_user_scram_credentials: Final = _needs(Operation.DESCRIBE, _described_users)
admit_alter_user_scram_credentials: Final = _needs(Operation.ALTER, _altered_users)
