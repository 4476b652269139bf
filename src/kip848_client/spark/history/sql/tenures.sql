-- Who owned which partition when: as members say (granted: false), and as coordinators gave
-- (granted: true). The rules are those of kip848_client.history.core._ownership.
WITH alive AS (
    SELECT group_id, member_id, max(time_ms) AS last_ms
    FROM seen_events
    WHERE is_members OR kind = 'heartbeat'
    GROUP BY group_id, member_id
),
view AS (
    SELECT false AS granted, * FROM seen_events WHERE is_members = is_own
    UNION ALL
    SELECT true AS granted, * FROM seen_events WHERE NOT is_members
),
change AS (
    SELECT granted, group_id, member_id, row.topic, partition, time_ms, writer, seq, kind
    FROM view
    LATERAL VIEW explode(partitions) AS row
    LATERAL VIEW explode(array_distinct(row.partitions)) AS partition
    WHERE kind IN ('assigned', 'revoked', 'lost')
),
distinct_change AS (
    SELECT DISTINCT * FROM change
),
followed AS (
    SELECT *,
        lead(time_ms) OVER turn AS next_ms,
        lead(kind) OVER turn AS next_kind
    FROM distinct_change
    WINDOW turn AS (
        PARTITION BY granted, group_id, member_id, topic, partition
        ORDER BY time_ms, writer, seq
    )
)
SELECT followed.granted, followed.group_id, followed.topic, followed.partition,
    followed.time_ms AS start_ms,
    coalesce(
        followed.next_ms, greatest(coalesce(alive.last_ms, followed.time_ms), followed.time_ms)
    ) AS end_ms,
    followed.member_id,
    coalesce(followed.next_kind, 'vanished') AS how
FROM followed
LEFT JOIN alive
    ON alive.group_id = followed.group_id AND alive.member_id = followed.member_id
WHERE followed.kind = 'assigned'
