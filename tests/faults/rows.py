"""What may go wrong with one server and its clients, and the test that shows what comes of it."""

from typing import Final

ROWS: Final = {
    # The server is gone, or says nothing
    "connection lost, the reply with it": "faults/test_lost_replies.py::test_R05_a_lost_reply_is_asked_for_again",
    "connection lost before the call": (
        "faults/test_lost_replies.py::test_R05_a_call_on_a_connection_that_is_gone_is_sent_again"
    ),
    "CLIENT KILL of every connection": "faults/test_readers.py::test_fifty_lost_connections_leave_as_many_as_before",
    "idle connections closed by `timeout`": (
        "faults/test_refusals.py::test_idle_connections_that_the_server_closed_are_made_again"
    ),
    "a server stopped in its tracks": "worker/test_groups.py::test_R17_a_paused_server_only_makes_it_late",
    "a server that hangs for good": "faults/test_outages.py::test_R17_a_server_that_hangs_says_unsure_in_the_end",
    "a slow server": "faults/test_outages.py::test_R17_a_slow_server_is_waited_for",
    "CLIENT PAUSE": (
        "faults/test_refusals.py::test_a_server_that_is_paused_for_longer_than_a_call_is_asked_again"
    ),
    "half-open: a call": "faults/test_outages.py::test_R17_a_silent_connection_is_given_up_and_the_call_sent_again",
    "half-open: a waiter": "faults/test_half_open.py::test_R17_a_waiter_finds_out_by_itself",
    "half-open: later waiters": "faults/test_half_open.py::test_R17_later_waiters_hear_bells_again",
    "half-open: a blocking waiter": "faults/test_half_open.py::test_R17_a_blocking_waiter_finds_out_by_itself",
    "half-open: a follower": "faults/test_half_open.py::test_R17_a_follower_finds_out_by_itself",
    "half-open: a blocking follower": "faults/test_half_open.py::test_R17_a_blocking_follower_finds_out_by_itself",
    "half-open: a worker's bells": "faults/test_half_open.py::test_R17_a_worker_finds_out_by_itself",
    "half-open: bells being set up": (
        "faults/test_half_open.py::test_R17_a_worker_whose_bells_hang_at_the_start_comes_to_work"
    ),
    "half-open: renewals": "faults/test_half_open.py::test_R17_leases_are_renewed_over_a_new_connection",
    "half-open: a sweeper": "faults/test_half_open.py::test_R17_a_sweeper_finds_out_by_itself",
    "a slow consumer": "faults/test_half_open.py::test_R17_a_slow_consumer_is_served_late_and_holds_up_nobody",
    "outages under a follower and a worker": (
        "faults/test_outages.py::test_a_follower_and_a_worker_outlive_cuts_and_outages"
    ),
    # The server refuses
    "LOADING": "faults/test_outages.py::test_a_server_that_loads_is_waited_for",
    "READONLY, BUSY, MISCONF, NOREPLICAS, too many clients": (
        "faults/test_refusals.py::test_what_passes_is_waited_for"
    ),
    "UNBLOCKED": "faults/test_refusals.py::test_readers_that_are_unblocked_read_on",
    "NOSCRIPT": "faults/test_full.py::test_R11_a_server_that_forgot_the_scripts_is_told_them_again",
    "OOM": "faults/test_full.py::test_P15_R12_a_full_server_refuses_new_work_and_lets_the_rest_go_on",
    "OOM under a flood": "faults/test_flood.py::test_R12_a_flood_of_new_work_is_refused_and_the_rest_goes_on",
    "OOM, a fleet that comes then": (
        "faults/test_full.py::test_P15_R12_a_fleet_that_starts_on_a_full_server_works_it_off"
    ),
    "WRONGPASS, NOPERM while at work": (
        "faults/test_credentials.py::test_a_credential_that_is_good_no_more_ends_whoever_uses_it"
    ),
    "NOAUTH": "faults/test_credentials.py::test_NOAUTH_is_fatal_at_once",
    "WRONGPASS at the start": "clients/_async/test_connecting.py::test_with_a_password",
    "NOPERM at the start": "clients/_async/test_connecting.py::test_as_a_user_of_the_server",
    "WRONGTYPE: a stream": "faults/test_readers.py::test_a_stream_that_is_no_stream_is_said_loudly",
    "WRONGTYPE: a record": "scripts/test_keys.py::test_a_key_of_another_type_is_named_and_nothing_is_written",
    "a node of a cluster": "clients/_async/test_connecting.py::test_a_node_of_a_cluster_is_refused",
    "a replica": "clients/_async/test_connecting.py::test_a_replica_is_refused",
    "eviction": "clients/_async/test_connecting.py::test_a_server_that_would_delete_pauses_is_refused",
    # The server lost something
    "groups, streams, scripts or all data lost, also while blocked": (
        "worker/test_groups.py::test_P9_R11_whatever_is_lost_it_goes_on"
    ),
    "FLUSHALL under load": "faults/test_everything_lost.py::test_R11_a_fleet_under_load_outlives_FLUSHALL",
    "FLUSHALL, then no endless NOGROUP": "faults/test_everything_lost.py::test_R11_after_FLUSHALL_nobody_spins",
    "FLUSHALL, then asked again": (
        "faults/test_everything_lost.py::test_R11_FLUSHALL_forgets_what_was_asked_and_lets_it_be_asked_again"
    ),
    "settings lost": "worker/test_groups.py::test_R11_a_server_without_its_settings_gets_them_again",
    "bells lost": "worker/test_groups.py::test_P9_R11_what_is_open_is_rung_again_within_two_periods",
    "ready bells lost": "worker/test_groups.py::test_P9_R11_a_run_whose_bell_is_lost_is_found",
    # Streams and groups
    "an id of the far future": "faults/test_readers.py::test_an_id_of_the_far_future_only_orders_what_follows",
    "the last possible id": "faults/test_readers.py::test_a_stream_whose_ids_are_used_up_is_made_anew",
    "pending rows of entries that are gone": (
        "faults/test_readers.py::test_a_row_of_an_entry_that_is_gone_holds_up_nobody"
    ),
    "trimmed streams leave no rows": (
        "worker/test_sweeping.py::test_bells_are_trimmed_and_nobody_owes_what_is_gone"
    ),
    "a dead reader's entries": "worker/test_groups.py::test_two_processes_share_a_group_and_one_is_killed",
    "a reader that leaves with entries": (
        "clients/_async/test_following.py::test_who_leaves_in_the_middle_leaves_it_to_another"
    ),
    "names of readers that are gone": (
        "clients/_async/test_following.py::test_a_reader_that_is_done_leaves_no_name"
    ),
    "a group made late": "scripts/test_rings.py::test_a_group_made_anew_reads_what_is_there",
    "bells without payload": "scripts/test_rings.py::test_bells_carry_the_address_and_no_payload",
    "an idle fleet": "faults/test_readers.py::test_an_idle_fleet_waits_and_does_not_ask",
    # The client's own doing
    "more calls than connections": "clients/test_loops.py::test_many_more_calls_than_connections",
    "a fork": "faults/test_readers.py::test_a_process_that_forks_has_connections_for_each_half",
    "two event loops": "clients/test_loops.py::test_a_broker_of_a_living_loop_is_for_that_one",
    "somebody's client and its defaults": (
        "clients/_async/test_connecting.py::test_by_somebodys_client_without_its_habits"
    ),
    "a call cancelled anywhere": (
        "faults/test_cancelled.py::test_a_call_cancelled_wherever_it_waits_harms_nobody_and_may_be_made_again"
    ),
    "a wait cancelled while it subscribes": (
        "faults/test_cancelled_waits.py::test_a_wait_that_is_cancelled_leaves_its_neighbours_their_bells"
    ),
    "a confirmed call cancelled": (
        "durability/test_confirming.py::test_a_waiter_that_is_cancelled_takes_nobody_along"
    ),
    "a swallowed cancellation": "faults/test_cancelled_waits.py::test_a_time_limit_around_a_call_always_ends_it",
    # Leases and sweeps
    "a handler that blocks its loop": (
        "worker/test_dying.py::test_a_handler_that_blocks_the_loop_for_three_leases_keeps_its_run"
    ),
    "a worker frozen past its lease": "worker/test_dying.py::test_R03_a_worker_stopped_past_its_lease_writes_nothing",
    "a drain longer than a lease": (
        "worker/test_ending.py::test_a_drain_that_is_longer_than_a_lease_keeps_its_runs"
    ),
    "a killed worker": "worker/test_dying.py::test_the_run_of_a_killed_worker_goes_to_another",
    "two workers and one run": "scripts/test_batches.py::test_two_leases_of_one_run_in_one_batch_are_one",
    "a killed sweeper": "worker/test_sweeping.py::test_the_right_of_a_dead_sweeper_ends",
    "a fleet of sweepers": "worker/test_sweeping.py::test_only_one_sweeps",
    "what a sweeper cannot read": "worker/test_sweeping.py::test_what_cannot_be_read_holds_up_nobody",
    "poison": "worker/test_failing.py::test_poison_is_dead_in_the_end_and_the_others_go_on",
    "large values": "scripts/test_refused_values.py::test_what_is_too_large_is_refused_by_its_field",
    "long lists inside a script": "scripts/test_journal.py::test_the_longest_journal_can_be_cut",
}
