-- All events once, by the coordinator's clock. The rules are those of kip848_client.history.core._clocks.
WITH each AS (
    SELECT DISTINCT * FROM history_events
),
heartbeat AS (
    SELECT *,
        row_number() OVER (
            PARTITION BY role = 'coordinator', group_id, member_id, member_epoch
            ORDER BY time_ms, writer, seq
        ) AS number,
        count(*) OVER (
            PARTITION BY role = 'coordinator', group_id, member_id, member_epoch
        ) AS many
    FROM each
    WHERE kind = 'heartbeat'
),
bounds AS (
    SELECT seen.host,
        max(given.time_ms - seen.time_ms) AS low,
        min(given.time_ms - seen.time_ms + coalesce(seen.duration_ms, 0)) AS high
    FROM heartbeat seen
    JOIN heartbeat given
        ON given.role = 'coordinator' AND seen.role <> 'coordinator'
        AND given.group_id = seen.group_id
        AND given.member_id <=> seen.member_id
        AND given.member_epoch <=> seen.member_epoch
        AND given.number = seen.number
        AND given.many = seen.many
    GROUP BY seen.host
),
offsets AS (
    SELECT host,
        CASE WHEN low > high THEN 0 WHEN low > 0 THEN low ELSE least(high, 0) END AS offset_ms
    FROM bounds
)
SELECT each.* EXCEPT (time_ms),
    each.time_ms + CASE
        WHEN each.role = 'coordinator' THEN 0 ELSE coalesce(offsets.offset_ms, 0)
    END AS time_ms
FROM each
LEFT JOIN offsets ON offsets.host = each.host
