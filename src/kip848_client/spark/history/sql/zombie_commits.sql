-- Commits of members that had no business any more with what they committed. The rules are those of
-- kip848_client.history.core._zombies.
WITH watched AS (
    SELECT DISTINCT group_id FROM on_one_clock WHERE role = 'coordinator'
),
asked AS (
    SELECT DISTINCT group_id, member_id, time_ms, member_epoch, writer, seq, cause, is_members,
        row.topic, partition,
        CASE kind WHEN 'committed' THEN 'accepted' ELSE 'refused' END AS outcome
    FROM seen_events
    LATERAL VIEW explode(partitions) AS row
    LATERAL VIEW explode(row.partitions) AS partition
    WHERE kind IN ('committed', 'commit_refused')
),
told AS (
    SELECT asked.*
    FROM asked
    LEFT ANTI JOIN watched ON watched.group_id = asked.group_id AND asked.is_members
),
judged AS (
    SELECT told.group_id, told.member_id, told.time_ms, told.member_epoch, told.topic,
        told.partition, told.outcome,
        told.cause,
        min(CASE WHEN owned.member_id <> told.member_id THEN owned.member_id END) AS owner,
        coalesce(bool_or(owned.member_id = told.member_id), false) AS is_owner
    FROM told
    LEFT JOIN tenures owned
        ON owned.granted <> told.is_members
        AND owned.group_id = told.group_id
        AND owned.topic = told.topic
        AND owned.partition = told.partition
        AND owned.start_ms <= told.time_ms
        AND told.time_ms < owned.end_ms
    GROUP BY told.group_id, told.member_id, told.time_ms, told.member_epoch, told.topic,
        told.partition, told.outcome, told.cause, told.writer, told.seq
)
SELECT group_id, member_id, time_ms, member_epoch, topic, partition, outcome, cause, owner
FROM judged
WHERE outcome = 'refused' OR (owner IS NOT NULL AND NOT is_owner)
