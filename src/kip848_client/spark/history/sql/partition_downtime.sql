-- How long partitions were nobody's, between their first and their last owner.
WITH before AS (
    SELECT *,
        max(end_ms) OVER (
            PARTITION BY group_id, topic, partition
            ORDER BY start_ms, end_ms, member_id
            ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
        ) AS reached_ms
    FROM tenures
    WHERE NOT granted
)
SELECT group_id, topic, partition,
    min(start_ms) AS first_owned_ms,
    max(end_ms) AS last_owned_ms,
    count(DISTINCT member_id) AS owners,
    sum(greatest(start_ms - coalesce(reached_ms, start_ms), 0)) AS downtime_ms,
    count_if(start_ms > reached_ms) AS gaps,
    max(greatest(start_ms - coalesce(reached_ms, start_ms), 0)) AS longest_gap_ms,
    sum(greatest(least(end_ms, coalesce(reached_ms, start_ms)) - start_ms, 0)) AS overlap_ms
FROM before
GROUP BY group_id, topic, partition
