-- The members that have written events: of these, what they say themselves counts.
SELECT DISTINCT group_id, member_id, true AS is_own
FROM on_one_clock
WHERE role <> 'coordinator' AND member_id IS NOT NULL
