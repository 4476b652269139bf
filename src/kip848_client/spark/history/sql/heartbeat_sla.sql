-- How soon heartbeats were answered; quantiles by nearest rank.
WITH event AS (
    SELECT *,
        CASE
            WHEN kind = 'heartbeat' AND duration_ms IS NOT NULL THEN row_number() OVER (
                PARTITION BY group_id, member_id, kind, duration_ms IS NOT NULL
                ORDER BY duration_ms
            )
        END AS rank,
        count_if(kind = 'heartbeat' AND duration_ms IS NOT NULL) OVER (
            PARTITION BY group_id, member_id
        ) AS measured,
        CASE
            WHEN kind = 'heartbeat' THEN time_ms - lag(time_ms) OVER (
                PARTITION BY group_id, member_id, kind ORDER BY time_ms, writer, seq
            )
        END AS silence_ms
    FROM seen_events
    WHERE is_members = is_own
        AND kind IN ('heartbeat', 'heartbeat_refused', 'heartbeat_lost')
)
SELECT group_id, member_id,
    count_if(kind = 'heartbeat') AS heartbeats,
    count_if(kind = 'heartbeat_refused') AS refused,
    count_if(kind = 'heartbeat_lost') AS lost,
    count_if(kind = 'heartbeat' AND duration_ms <= :sla_ms) AS in_time,
    min(CASE WHEN rank * 100 >= 50 * measured THEN duration_ms END) AS p50_ms,
    min(CASE WHEN rank * 100 >= 99 * measured THEN duration_ms END) AS p99_ms,
    max(CASE WHEN kind = 'heartbeat' THEN duration_ms END) AS max_ms,
    coalesce(max(silence_ms), 0) AS longest_silence_ms
FROM event
GROUP BY group_id, member_id
