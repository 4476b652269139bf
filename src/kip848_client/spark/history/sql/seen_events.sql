-- What happened to members: is_members (who wrote it), and is_own (whether the member wrote events).
SELECT event.*,
    event.role <> 'coordinator' AS is_members,
    coalesce(own.is_own, false) AS is_own
FROM on_one_clock event
LEFT JOIN own_members own
    ON own.group_id = event.group_id AND own.member_id = event.member_id
WHERE event.member_id IS NOT NULL
