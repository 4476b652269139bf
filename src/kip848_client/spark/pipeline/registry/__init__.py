"""Decodes values that serializers for a schema registry have written.

``_decoder`` is what executors run; it asks ``_client`` for schemas by id, and ``_avro``,
``_json_schema`` and ``_protobuf`` decode values of one schema. ``core`` has frames and types.
"""

from __future__ import annotations

from kip848_client.spark.pipeline.registry._client import Registry
from kip848_client.spark.pipeline.registry._decoder import RegistryDecoder

__all__ = ["Registry", "RegistryDecoder"]
