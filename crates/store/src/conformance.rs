//! What a store is, as a suite that every implementation runs: [`crate::store_conformance`] makes one test of
//! each case. A case is a short story about a [`world::World`] around a store that is empty at first.
//!
//! [`histories`] goes on where the stories end: it drives two stores through the same random history and
//! compares all they answer.
//!
//! That the suite notices what it should is tried with bugs that are planted in the stores: see [`found_by`].

#![allow(clippy::expect_used, clippy::panic, reason = "a suite of tests: a case fails by panicking")]

pub mod along;
pub mod bundles;
pub mod claims;
pub mod dice;
pub mod endings;
pub mod expectations;
pub mod forgetting;
pub mod handing_on;
pub mod histories;
pub mod journals;
pub mod lists;
pub mod pauses;
pub mod selecting;
pub mod sessions;
pub mod together;
pub mod workers;
pub mod world;

use ostler_kernel::runtime::BoxFuture;

use crate::planted::Bug;

pub struct Case {
    pub name: &'static str,
    pub play: fn(world::World) -> BoxFuture<'static, ()>,
}

/// Takes the list of all cases. The first argument is a dollar sign, for the macro inside the macro.
macro_rules! cases {
    ($dollar:tt $($area:ident: $($case:ident)*;)*) => {
        /// Makes one test of each case. Give it an async function that makes an empty store and whatever must
        /// be kept as long as the store is: `async fn make() -> (Arc<dyn Store>, Guard)`.
        #[macro_export]
        macro_rules! store_conformance {
            ($dollar make:path) => {$($(
                #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
                async fn $case() {
                    let (store, _kept) = $dollar make().await;
                    let world = $crate::conformance::world::World::new(store);
                    $crate::conformance::$area::$case(world).await;
                }
            )*)*};
        }

        /// All of them, to be played on stores that are chosen at run time.
        pub fn cases() -> Vec<Case> {
            vec![$($(Case {
                name: stringify!($case),
                play: |world| Box::pin($area::$case(world)),
            },)*)*]
        }

        #[test]
        fn every_case_is_listed() {
            $({
                let listed = [$(stringify!($case)),*];
                let source = include_str!(concat!("conformance/", stringify!($area), ".rs"));
                assert_eq!(source.matches("(world: World)").count(), listed.len(), "in {}", stringify!($area));
            })*
        }
    };
}

cases! { $
    expectations:
        a_run_in_another_state_refuses
        a_run_under_another_epoch_refuses
        a_run_that_took_another_write_refuses
        a_run_that_is_not_there_refuses
        a_session_written_meanwhile_refuses
        a_session_that_is_not_there_has_version_0
        an_input_that_came_meanwhile_refuses
        names_are_unique_in_their_namespace
        idempotency_keys_are_unique_in_their_namespace
        session_keys_are_unique_for_their_subject
        a_worker_of_another_incarnation_refuses
        a_worker_whose_counter_moved_refuses
        a_resource_written_meanwhile_refuses
        every_expectation_must_hold
        a_take_over_decided_before_the_last_write_is_refused;
    bundles:
        nothing_to_commit_is_fine
        a_refused_bundle_leaves_nothing_behind
        what_a_constraint_keeps_out_leaves_nothing_behind
        a_refused_bundle_takes_no_number
        the_neighbours_of_a_refused_bundle_apply
        a_bundle_is_judged_behind_the_one_before_it
        a_log_is_dense_and_positions_follow_commits
        an_answer_tells_the_position_of_its_events
        a_bundle_sent_again_gets_its_first_answer
        a_finish_sent_again_gets_its_first_answer
        a_bundle_twice_in_one_commit_is_applied_once
        an_older_write_sent_again_is_refused
        a_write_taken_before_a_take_over_is_still_known
        an_entry_is_written_once
        a_step_is_opened_once_and_done_once
        entries_and_steps_leave_no_gap
        a_session_has_one_live_run_whatever_a_bundle_says
        what_is_there_is_not_made_again
        names_and_keys_are_kept_for_one_whatever_a_bundle_says
        the_first_row_that_is_in_the_way_is_named
        a_request_never_changes;
    claims:
        the_first_claim_begins_the_run
        a_later_claim_goes_on
        the_longest_waiting_goes_first
        runs_of_one_rank_go_in_the_order_of_their_ids
        priority_is_worth_waiting_time
        namespaces_share_a_claim
        turns_are_remembered_between_claims
        a_lane_holds_its_limit_exactly
        who_waits_or_sleeps_makes_room_in_its_lane
        the_last_limit_of_a_lane_counts
        a_limit_counts_for_what_waits_already
        of_limits_that_come_together_the_last_one_counts
        a_full_lane_holds_up_nobody_else
        a_lane_without_room_at_all_gets_nothing
        the_same_claim_gets_the_same_runs
        the_same_claim_gets_only_what_it_still_holds
        an_overtaken_claim_gets_nothing
        a_claim_overtaken_by_one_that_got_nothing_gets_nothing
        a_claim_that_got_nothing_may_be_made_again
        a_former_incarnation_gets_nothing
        a_restarted_worker_does_not_get_its_old_claim_back
        a_worker_nobody_knows_gets_nothing
        no_slots_get_nothing
        only_ready_runs_are_given
        who_lost_its_worker_keeps_its_place;
    along:
        what_comes_with_a_claim_goes_to_it
        several_that_come_are_shared_out
        who_waits_already_goes_first
        limits_hold_for_what_comes_along
        only_whom_it_fits_gets_what_comes_along
        what_is_refused_goes_to_nobody
        a_lost_answer_is_not_made_up_for_by_what_comes
        who_may_not_claim_gets_nothing_that_comes
        the_same_claim_twice_at_once_gets_the_same
        two_of_one_session_come_along;
    selecting:
        resources_are_selected_before_they_are_paged
        tasks_are_selected_before_they_are_paged
        namespaces_are_those_that_something_lives_in
        changes_of_resources_are_told_in_the_log
        what_was_told_long_ago_is_forgotten_in_chapters;
    forgetting:
        of_a_forgotten_conversation_nothing_is_left
        a_conversation_that_goes_on_is_not_forgotten
        a_forgotten_worker_is_gone_and_comes_back_as_another
        a_worker_that_lives_is_not_forgotten
        of_a_forgotten_task_nothing_is_left
        others_stay_as_they_were
        what_has_not_ended_is_not_forgotten
        a_task_is_forgotten_once
        name_and_key_are_free_again
        a_named_conversation_outlives_its_task
        positions_go_on_behind_what_was_forgotten
        the_oldest_are_found_first
        what_was_told_just_before_is_forgotten_with_the_rest;
    handing_on:
        one_ends_and_the_next_is_ready_at_once
        the_last_one_ends_the_task
        a_message_is_kept_until_it_is_told
        who_hands_on_twice_hands_on_once
        a_stale_epoch_hands_nothing_on
        a_conversation_that_someone_joined_refuses_a_hand_over
        who_is_handed_to_waits_for_its_conversation
        whoever_is_at_work_is_cancelled
        of_a_forgotten_system_nothing_is_left;
    journals:
        a_journal_write_leaves_step_entry_and_event
        a_journal_write_leaves_lease_and_state_alone
        a_loop_of_many_steps_reads_back_in_order
        a_long_log_is_read_from_anywhere
        a_stale_epoch_can_not_journal
        a_stale_epoch_can_not_leave
        writes_go_on_counting_over_attempts
        inputs_are_numbered_and_wait_to_be_taken
        two_inputs_at_once_do_not_share_a_number
        inputs_are_consumed_with_the_step_that_used_them
        a_refused_step_consumes_nothing
        nobody_takes_an_input_that_was_not_sent
        nobody_gives_back_an_input_that_was_taken
        nobody_finishes_past_an_input_that_came_meanwhile
        nobody_goes_to_wait_or_sleep_past_an_input;
    sessions:
        runs_of_a_session_go_one_at_a_time
        the_ending_commit_makes_the_next_one_ready
        a_run_that_pauses_keeps_its_session
        who_gives_up_its_place_in_line_moves_nobody
        a_head_that_never_began_lets_the_next_one_go
        an_end_decided_before_someone_joined_is_refused
        a_conversation_goes_on_where_it_ended
        a_session_is_found_by_its_key;
    endings:
        cancel_closes_open_steps_and_answers_their_calls
        of_a_model_call_that_was_stopped_nobody_knows_the_cost
        no_step_is_open_behind_an_end
        who_may_have_called_once_only_is_told_so
        a_cancelled_run_can_not_be_written_by_its_worker
        a_cancel_decided_before_the_last_write_is_refused
        whoever_has_not_ended_can_be_cancelled
        whoever_ends_while_it_waits_leaves_no_open_blocker
        what_was_answered_stays_answered_when_its_run_ends
        terminal_is_terminal
        used_up_retries_end_as_a_dead_letter
        a_permanent_failure_is_not_retried
        an_archived_task_is_out_of_sight_and_still_there;
    pauses:
        who_pauses_keeps_its_open_steps
        a_retry_waits_for_its_time
        how_long_is_kept_beside_until_when
        who_is_woken_twice_wakes_once
        a_sleeper_wakes_for_an_input
        an_input_answers_who_waits_for_one
        an_approval_is_not_answered_by_an_input
        what_is_due_comes_in_the_order_of_time
        a_deadline_counts_until_the_end
        losing_workers_again_and_again_quarantines
        restarts_and_finished_steps_do_not_quarantine
        crashing_again_and_again_quarantines_in_the_end
        a_lost_attempt_is_told_in_the_log
        the_whole_is_tried_again_after_a_pause_of_its_own
        a_line_of_agents_shares_the_tries_at_the_whole;
    lists:
        conversations_with_a_key_are_listed
        of_a_system_one_task_was_accepted
        tasks_are_listed_newest_first_and_page_by_page
        tasks_are_listed_by_namespace_and_state
        a_task_is_found_by_id_name_and_key
        what_is_not_there_is_answered_by_nothing
        resources_are_listed_by_namespace_and_name
        a_resource_reads_back_as_it_was_written
        the_log_is_read_page_by_page
        the_log_becomes_firm
        a_tasks_log_is_resumed_behind_what_was_seen
        as_many_as_there_are_may_be_asked_for
        a_blob_is_found_by_its_hash
        a_blob_that_is_put_again_stays
        leases_are_listed_by_worker
        a_worker_reads_back_as_it_was_written
        workers_are_listed_with_their_counters;
    workers:
        what_a_worker_offers_is_kept
        a_run_goes_only_to_a_worker_that_meets_it
        a_class_holds_its_limit_whatever_its_runs_require
        a_namespace_holds_its_limit
        namespaces_share_by_weight
        a_cordoned_worker_gets_nothing_new
        who_may_claim_again_is_told
        who_makes_room_is_told_of;
    together:
        what_was_answered_can_be_read
        a_watcher_hears_of_events
        a_watcher_hears_of_what_became_ready
        a_watcher_hears_of_what_will_be_due
        a_watcher_hears_of_resources_before_their_writer_does
        a_watcher_who_comes_late_is_told_where_things_stand
        commits_of_many_all_land_once
        one_of_many_gets_the_name
        one_of_many_resends_is_applied
        no_run_is_given_to_two;
}

/// Which case finds a planted bug.
pub struct Finding {
    pub bug: Bug,
    /// The stores that it can be planted in.
    pub stores: &'static [Planting],
    pub case: &'static str,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Planting {
    Sqlite,
    Postgres,
}

/// Takes the list of all planted bugs: where each is planted, and what finds it. The first argument is a dollar sign, for
/// the macro inside the macro.
macro_rules! findings {
    ($dollar:tt $($bug:ident: $($store:ident)* => $case:ident;)*) => {
        /// The bugs that can be planted, and what finds each of them. A case that is none of this suite is a story of
        /// several servers on one store (`testing/src/several_servers.rs`).
        ///
        /// | bug | planted in | found by |
        /// |---|---|---|
        $(#[doc = concat!(
            "| [`", stringify!($bug), "`](Bug::", stringify!($bug), ") |", $(" ", stringify!($store),)*
            " | `", stringify!($case), "` |"
        )])*
        pub fn found_by(bug: Bug) -> Finding {
            let (stores, case): (&[Planting], _) = match bug {
                $(Bug::$bug => (&[$(Planting::$store),*], stringify!($case)),)*
            };
            Finding { bug, stores, case }
        }

        /// Makes one test of each bug. Give it an async function that tries whether it is found:
        /// `async fn is_found(finding: Finding)`.
        #[macro_export]
        macro_rules! planted_bugs {
            ($dollar is_found:path) => {$(
                #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
                #[allow(non_snake_case, reason = "a test is named as its bug")]
                async fn $bug() {
                    $dollar is_found($crate::conformance::found_by($crate::planted::Bug::$bug)).await;
                }
            )*};
        }
    };
}

findings! { $
    LogWithoutBound: Postgres => who_follows_waits_for_one_that_began_earlier;
    LaneWithoutLock: Postgres => two_servers_do_not_both_give_the_last_place;
    LimitPerClaim: Sqlite Postgres => a_lane_holds_its_limit_exactly;
    ClaimWithoutLock: Postgres => a_server_that_stands_still_holds_up_no_claim_of_another;
    ClaimsInLine: Postgres => a_server_that_stands_still_holds_up_no_claim_of_another;
    FormerIncarnation: Sqlite Postgres => a_former_incarnation_gets_nothing;
    OvertakenClaim: Sqlite Postgres => an_overtaken_claim_gets_nothing;
    LostClaimServedAnew: Sqlite Postgres => the_same_claim_gets_the_same_runs;
    RefusedBreaksBatch: Sqlite Postgres => names_and_keys_are_kept_for_one_whatever_a_bundle_says;
    RefusedLeavesRows: Sqlite Postgres => what_a_constraint_keeps_out_leaves_nothing_behind;
    RefusedTakesNumbers: Postgres => a_refused_bundle_takes_no_number;
    InputsConsumedApart: Sqlite Postgres => a_refused_step_consumes_nothing;
    WriteNumberForgotten: Sqlite Postgres => a_bundle_sent_again_gets_its_first_answer;
    EpochIgnored: Sqlite Postgres => a_stale_epoch_can_not_journal;
    JudgedWithoutLocks: Postgres => what_one_server_changed_the_other_does_not_overwrite;
    JudgedAsBefore: Postgres => a_bundle_is_judged_behind_the_one_before_it;
    TwoLiveRuns: Sqlite Postgres => a_session_has_one_live_run_whatever_a_bundle_says;
    ReaderStandsStill: Postgres => what_was_answered_can_be_read;
    ReadyUntold: Sqlite => a_watcher_hears_of_what_became_ready;
    NoticesLost: Postgres => what_one_server_commits_the_other_hears_of;
}
