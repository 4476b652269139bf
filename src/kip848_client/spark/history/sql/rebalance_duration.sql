-- How long groups took to come to an epoch: from the first event that knows of it to the last step
-- that a member took in it.
WITH arrival AS (
    SELECT group_id, member_id, member_epoch AS epoch, min(time_ms) AS time_ms
    FROM seen_events
    WHERE member_epoch > 0 AND is_members = is_own
        AND (kind = 'epoch' OR (kind = 'heartbeat' AND NOT is_own))
    GROUP BY group_id, member_id, member_epoch
),
start AS (
    SELECT group_id, member_epoch AS epoch, time_ms, partitions
    FROM seen_events
    WHERE member_epoch > 0 AND is_members = is_own AND kind = 'assigned'
),
moved AS (
    SELECT group_id, epoch, count(DISTINCT row.topic, partition) AS moved
    FROM start
    LATERAL VIEW explode(partitions) AS row
    LATERAL VIEW explode(row.partitions) AS partition
    GROUP BY group_id, epoch
),
sign AS (
    SELECT group_id, epoch, time_ms, member_id, true AS is_step FROM arrival
    UNION ALL
    SELECT group_id, epoch, time_ms, NULL, true FROM start
    UNION ALL
    SELECT group_id, group_epoch, time_ms, NULL, false
    FROM on_one_clock
    WHERE kind = 'group_epoch' AND group_epoch > 0
)
SELECT sign.group_id, sign.epoch,
    min(sign.time_ms) AS began_ms,
    greatest(max(CASE WHEN sign.is_step THEN sign.time_ms END), min(sign.time_ms)) AS ended_ms,
    greatest(max(CASE WHEN sign.is_step THEN sign.time_ms END), min(sign.time_ms))
        - min(sign.time_ms) AS duration_ms,
    count(DISTINCT sign.member_id) AS members,
    coalesce(max(moved.moved), 0) AS moved
FROM sign
LEFT JOIN moved ON moved.group_id = sign.group_id AND moved.epoch = sign.epoch
GROUP BY sign.group_id, sign.epoch
HAVING count(sign.member_id) > 0
