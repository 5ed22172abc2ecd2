//! One suite over the ports, run on every implementation: what a store must do, whatever it is made of.
//!
//! The last of them is Amazon's own `DynamoDB` Local, where `ROOMTIDE_DYNAMODB_LOCAL` says it is. Its tests are
//! ignored unless they are asked for, as `.ci/run contract` does.
//!
//! The cases of all ports run on tables of another layout too: without the index by room, and with several partitions
//! of devices.

mod alerts;
mod annotations;
mod conditions;
mod deletions;
mod edits;
mod items;
mod meters;
mod ranges;
mod readings;
mod registry;
mod rollups;
mod search;
mod seen;
mod shards;
mod sources;
mod stays;
mod tariffs;
mod tokens;

use table::memory_db::MemoryDb;
use table::{
    AddArrival, AddToken, CountIntroduced, DeleteAlertStates, DeleteReadings, EditAlertRules,
    EditAlertStates, EditAnnotations, EditChannels, EditRegistry, EditSources, EditTariffs,
    FindRegistry, FindToken, FinishRechecks, KeepRollupState, ListDevices, LookUpRegistry,
    ManageTokens, MarkDeletions, MarkLateChanges, MergeReadings, NoteChannels, NoteRechecks,
    NoteRunning, NoteSeen, PageRegistry, PutConditionsSchema, PutJudgements, PutReadings,
    PutRollups, PutTestMessages, QueryConditions, QueryReadings, QueryRoomReadings, ReadAlertRules,
    ReadAlertStates, ReadAnnotations, ReadChannelSecrets, ReadChannels, ReadConditionsSchema,
    ReadLateChanges, ReadRechecks, ReadRefold, ReadRegistry, ReadRollupState, ReadRollups,
    ReadRunning, ReadSeen, ReadSourceSecrets, ReadSources, ReadStays, ReadStoredReadings,
    ReadTariffs, ReadToldMessages, ReadWaitingMessages, RegisterDevices, RemoveBelongings,
    RemoveRooms, RestoreStays, RunSources, SendWaitingMessages, SetConditionsReady, UpdateRegistry,
};

use crate::engine::{Engine, Table, layout_of};

table::store! {
    /// All ports at once.
    trait Ports: PutReadings + MergeReadings + AddArrival + QueryReadings + QueryRoomReadings
        + LookUpRegistry + ReadRegistry + FindRegistry + RegisterDevices + UpdateRegistry
        + EditRegistry + CountIntroduced + FindToken + AddToken + ManageTokens
        + ReadAnnotations + EditAnnotations + ReadTariffs + EditTariffs + ReadRollups + ReadStoredReadings + PutRollups
        + ReadRollupState + KeepRollupState + ReadLateChanges + MarkLateChanges + ListDevices
        + DeleteReadings + PageRegistry + MarkDeletions + RemoveBelongings + RemoveRooms + ReadStays
        + RestoreStays + NoteSeen + ReadSeen + ReadRefold
}

table::store! {
    /// All ports of the index by conditions.
    trait ConditionsPorts: PutRollups + ReadRollups + ReadConditionsSchema + PutConditionsSchema
        + SetConditionsReady + QueryConditions
}

table::store! {
    /// All ports of alerts.
    trait AlertPorts: PutTestMessages + ReadAlertRules + EditAlertRules + ReadChannels + EditChannels
        + ReadChannelSecrets + NoteChannels + ReadAlertStates + PutJudgements + EditAlertStates
        + DeleteAlertStates + ReadToldMessages + ReadWaitingMessages + SendWaitingMessages
        + NoteRechecks + ReadRechecks + FinishRechecks + ReadRunning + NoteRunning
}

table::store! {
    /// All ports of sources that are asked.
    trait SourcePorts: ReadSources + EditSources + ReadSourceSecrets + RunSources
}

/// A table in memory.
struct Memory(MemoryDb);

impl Memory {
    fn store(&self) -> MemoryDb {
        self.0.clone()
    }
}

/// The parameters of a table's layout.
type Parameters = &'static [(&'static str, &'static str)];

const DEFAULT: Parameters = &[("RoomIndex", "on")];
const WITHOUT_ROOM_INDEX: Parameters = &[("RoomIndex", "off")];
const WITH_FOUR_SHARDS: Parameters = &[("DeviceShards", "4")];
const WITH_CONDITIONS_INDEX: Parameters = &[("ConditionsIndex", "on")];
/// Several partitions of devices, so that the answers of several are put together.
const WITH_ATTRIBUTE_INDEX: Parameters = &[("AttributeIndex", "on"), ("DeviceShards", "3")];

async fn memory(parameters: Parameters) -> Memory {
    Memory(MemoryDb::of(layout_of(parameters)))
}

async fn engine(parameters: Parameters) -> Table {
    Engine::embedded().await.table_of(parameters).await
}

async fn dynamodb_local(parameters: Parameters) -> Table {
    running_elsewhere().table_of(parameters).await
}

/// `DynamoDB` Local. Who asks for its tests says where it runs.
#[expect(
    clippy::disallowed_methods,
    reason = "a test's own switch, not the system's configuration"
)]
fn running_elsewhere() -> Engine {
    let endpoint = std::env::var("ROOMTIDE_DYNAMODB_LOCAL");
    Engine::at(endpoint.expect("ROOMTIDE_DYNAMODB_LOCAL is the address of DynamoDB Local"))
}

/// Makes a test of each case: `always`, or `when_asked` for it.
macro_rules! run {
    ($when:ident $backend:ident($layout:ident): $($group:ident($given:ident): $($case:ident)*;)*) => {
        $($(
            run! { @$when $case {
                let table = super::$backend(super::$layout).await;
                run!(@case $group $case $given table);
            } }
        )*)*
    };
    (@always $case:ident { $($body:tt)* }) => {
        #[tokio::test]
        async fn $case() { $($body)* }
    };
    (@when_asked $case:ident { $($body:tt)* }) => {
        #[tokio::test]
        #[ignore = "needs DynamoDB Local: .ci/run contract"]
        async fn $case() { $($body)* }
    };
    (@case $group:ident $case:ident store $table:ident) => {
        Box::pin(super::$group::$case(&$table.store())).await
    };
    (@case $group:ident $case:ident table $table:ident) => {
        Box::pin(super::$group::$case(&$table)).await
    };
}

macro_rules! ports {
    ($when:ident $backend:ident($layout:ident)) => {
        run! { $when $backend($layout):
            readings(store):
                what_is_put_once_or_twice_comes_back_as_it_was
                a_later_put_replaces_the_whole_reading
                a_reading_that_will_expire_is_read_like_any_other
                a_merge_keeps_what_it_does_not_name
                a_merge_of_nothing_is_a_put
                merges_at_once_lose_nothing
                a_merge_keeps_the_room_that_the_sender_named
                a_merged_reading_may_have_any_number_of_metrics
                an_arrival_takes_nobodys_place
                of_arrivals_at_once_one_is_stored
                an_arrival_that_is_repeated_takes_no_merge_back;
            ranges(store):
                a_range_is_half_open
                the_first_and_last_instants_have_their_place
                a_device_sees_only_its_own
                a_limit_says_whether_there_is_more
                a_walk_meets_each_reading_once
                a_walk_goes_on_behind_what_is_gone
                a_room_is_the_rooms_of_its_readings
                the_same_instant_on_several_devices_is_walked_once
                nothing_is_found_where_nothing_is;
            registry(store):
                an_empty_registry_is_empty
                registered_twice_the_first_stays
                registered_by_many_at_once_one_is_first
                devices_and_rooms_are_apart_and_listed_by_id
                a_room_is_registered_once
                what_is_not_registered_learns_nothing
                learned_twice_changes_nothing
                an_earlier_first_reading_is_learned_a_later_refused
                a_room_is_learned_only_where_the_known_one_still_is
                a_refusal_refuses_the_whole
                a_persons_room_is_never_moved
                a_persons_settings_are_never_overwritten
                metrics_are_learned_however_long_and_many_they_are
                as_many_metrics_as_a_reading_has_are_described
                a_room_learns_its_first_reading
                learned_by_many_at_once_all_is_there
                a_device_learns_what_no_person_has_said
                a_room_without_a_name_is_named_once
                several_are_found_at_once
                a_device_introduces_so_many_rooms
                rooms_introduced_at_once_are_counted
                devices_introduced_at_once_are_counted;
            edits(store):
                what_is_not_registered_cannot_be_edited
                each_member_is_set_and_taken_away
                edited_twice_is_edited_once
                what_is_not_named_stays
                each_change_of_what_is_folded_has_a_number
                changes_at_once_have_numbers_of_their_own
                settings_of_metrics_are_nested
                metrics_may_be_called_like_anything
                many_metrics_are_edited_at_once
                an_unknown_metric_changes_nothing
                a_dropped_metric_is_forgotten_until_it_is_learned_again
                a_device_and_its_new_room_are_written_together_or_not_at_all
                rooms_chosen_at_once_are_one_after_the_other
                each_member_of_a_room_is_set_and_taken_away
                nothing_edited_is_nothing_changed;
            meters(store):
                a_circle_is_refused_however_long
                what_cannot_be_a_meter_is_named
                of_edits_at_once_that_close_a_circle_one_is_refused
                a_meter_knows_who_is_behind_it
                a_meter_with_devices_behind_it_is_not_deleted
                a_device_put_behind_a_meter_or_the_meter_deleted_not_both
                settings_are_checked_on_what_is_stored;
            stays(store):
                a_chosen_room_is_a_stay_of_the_device_and_in_the_room
                stays_are_restored_for_the_device_that_was_read
                a_stay_begins_when_the_patch_says
                a_stay_that_was_learned_needs_the_place_and_the_version_that_were_read
                stays_that_overlap_a_range_are_found
                a_walk_over_stays_meets_each_once
                a_device_that_is_named_is_in_a_rooms_ranges_though_it_has_moved;
            deletions(store):
                a_deleted_device_is_in_no_list_and_nothing_writes_it
                a_deletion_ends_only_where_nothing_was_found_since
                a_tombstone_gives_way_to_a_new_device
                all_that_belongs_to_a_device_is_found_and_removed
                of_a_stay_both_sides_are_removed_together
                a_room_is_removed_and_put_back
                a_room_leaves_only_the_home_that_is_named
                a_deleted_device_that_has_readings_again_keeps_them;
            rollups(store):
                a_rollup_is_put_only_over_what_was_read
                of_puts_at_once_one_is_stored
                newer_settings_are_never_replaced
                quarters_and_days_are_ranges_of_their_own
                a_thousand_quarters_are_read
                a_mark_moves_forward_and_back_where_it_is_ahead
                of_marks_at_once_none_is_lost
                the_first_state_stays
                readings_come_with_their_expiry
                every_device_is_listed
                deleted_twice_is_deleted_once;
            seen(store):
                what_is_noted_of_a_room_widens_by_compare_and_swap
                devices_seen_in_a_room_in_some_months_are_found
                what_is_noted_goes_with_the_device;
            shards(store):
                pages_hold_every_device_once_and_in_order
                pages_hold_every_room_once_and_in_order
                a_rooms_devices_are_a_list_of_their_own;
            tariffs(store):
                a_tariff_is_saved_over_what_was_read_and_deleted;
            annotations(store):
                annotations_of_a_range_are_those_that_overlap_it
                annotations_are_found_by_what_they_are_about
                annotations_are_walked_page_by_page
                an_annotation_is_replaced_and_deleted_for_good;
            tokens(store):
                a_token_comes_back_as_it_was
                a_token_is_never_replaced
                revoked_once_is_revoked_for_good;
        }
    };
}

macro_rules! searched {
    ($when:ident $backend:ident($layout:ident)) => {
        run! { $when $backend($layout):
            search(store):
                an_edit_is_found_and_what_it_replaces_is_not
                entries_are_in_the_order_of_numbers_and_walked_page_by_page
                texts_that_contain_a_separator_are_told_apart
                of_edits_at_once_the_entries_are_those_of_the_device
                all_values_are_replaced_at_once
                more_values_than_a_device_may_have_change_nothing;
        }
    };
}

macro_rules! tables_with_attribute_index {
    ($when:ident $backend:ident($layout:ident)) => {
        run! { $when $backend($layout):
            search(table):
                a_table_without_values_is_marked_by_itself
                a_table_with_a_value_is_not_marked_by_itself
                a_function_that_starts_marks_an_empty_table
                an_edit_without_the_index_takes_the_mark_away
                a_run_stores_what_is_missing_and_deletes_what_is_wrong
                of_two_runs_the_later_one_ends;
        }
    };
}

mod on_memory_with_attribute_index {
    searched!(always memory(WITH_ATTRIBUTE_INDEX));
}

mod on_engine_with_attribute_index {
    searched!(always engine(WITH_ATTRIBUTE_INDEX));
    tables_with_attribute_index!(always engine(WITH_ATTRIBUTE_INDEX));
}

mod on_dynamodb_local_with_attribute_index {
    searched!(when_asked dynamodb_local(WITH_ATTRIBUTE_INDEX));
    tables_with_attribute_index!(when_asked dynamodb_local(WITH_ATTRIBUTE_INDEX));
}

macro_rules! tables {
    ($when:ident $backend:ident($layout:ident)) => {
        run! { $when $backend($layout):
            items(table):
                a_reading_is_one_item
                an_expiry_is_days_after_the_readings_own_timestamp
                a_merge_sets_an_expiry
                a_registration_is_one_item
                what_others_left_is_passed_over
                only_what_is_asked_for_is_paid;
            shards(table):
                another_number_of_shards_is_refused
                of_numbers_at_once_one_is_first;
        }
    };
}

macro_rules! conditions {
    ($when:ident $backend:ident($layout:ident)) => {
        run! { $when $backend($layout):
            conditions(store):
                a_schema_is_put_only_over_what_was_read
                only_the_stored_schema_becomes_ready
                quarters_are_found_by_their_addresses
                a_walk_meets_each_quarter_once
                a_rollup_by_an_older_schema_replaces_none;
        }
    };
}

mod on_memory_with_conditions_index {
    conditions!(always memory(WITH_CONDITIONS_INDEX));
}

mod on_engine_with_conditions_index {
    conditions!(always engine(WITH_CONDITIONS_INDEX));
}

mod on_dynamodb_local_with_conditions_index {
    conditions!(when_asked dynamodb_local(WITH_CONDITIONS_INDEX));
}

macro_rules! alerts {
    ($when:ident $backend:ident($layout:ident)) => {
        run! { $when $backend($layout):
            alerts(store):
                a_rule_is_put_only_over_what_was_read
                of_rules_saved_at_once_one_is_stored
                a_channel_and_its_secret_are_stored_together_or_not_at_all
                of_edits_of_a_channel_at_once_the_secret_is_that_of_the_one_that_is_stored
                a_channel_that_was_edited_takes_no_note_of_what_it_was
                a_state_and_what_it_tells_are_stored_once
                a_rule_that_changed_or_is_gone_tells_nothing
                of_judgements_at_once_one_of_each_state_is_stored
                as_many_messages_are_told_as_a_transaction_holds
                a_state_is_edited_only_as_it_was_read
                what_was_told_once_is_a_state_too
                states_are_found_by_their_keys_by_rule_and_when_they_are_due
                states_are_deleted_by_rule_or_as_they_were_read
                what_was_told_is_walked_newest_first
                a_channel_has_its_own_messages_when_their_time_has_come
                a_test_waits_once
                of_leases_at_once_one_is_given
                a_look_keeps_the_earliest_instant_and_is_removed_only_as_it_was_read
                a_look_at_a_rule_moves_on_until_the_rule_is_touched
                looks_at_once_keep_the_earliest_instant
                the_mark_of_running_moves_on_from_what_was_read;
        }
    };
}

macro_rules! sources {
    ($when:ident $backend:ident($layout:ident)) => {
        run! { $when $backend($layout):
            sources(store):
                a_source_and_its_secrets_are_saved_together_or_not_at_all
                of_runs_begun_at_once_one_is_given
                a_run_is_noted_by_whoever_has_the_claim
                a_save_ends_the_run_and_keeps_what_was_counted;
        }
    };
}

macro_rules! tables_with_alerts {
    ($when:ident $backend:ident($layout:ident)) => {
        run! { $when $backend($layout):
            alerts(table):
                the_items_are_in_partitions_of_their_own_and_in_no_index
                what_cannot_be_read_is_named_and_hides_nothing
                a_device_that_is_deleted_takes_no_alert_with_it;
        }
    };
}

mod on_memory {
    alerts!(always memory(DEFAULT));
    sources!(always memory(DEFAULT));
    ports!(always memory(DEFAULT));
}

mod on_memory_without_room_index {
    ports!(always memory(WITHOUT_ROOM_INDEX));
}

mod on_memory_with_four_shards {
    ports!(always memory(WITH_FOUR_SHARDS));
}

mod on_engine {
    alerts!(always engine(DEFAULT));
    sources!(always engine(DEFAULT));
    ports!(always engine(DEFAULT));
    tables!(always engine(DEFAULT));
    tables_with_alerts!(always engine(DEFAULT));
}

mod on_engine_without_room_index {
    ports!(always engine(WITHOUT_ROOM_INDEX));
    run! { always engine(WITHOUT_ROOM_INDEX): items(table): what_others_left_is_passed_over; }
}

mod on_engine_with_four_shards {
    ports!(always engine(WITH_FOUR_SHARDS));
}

mod on_dynamodb_local_with_four_shards {
    ports!(when_asked dynamodb_local(WITH_FOUR_SHARDS));
}

mod on_dynamodb_local {
    alerts!(when_asked dynamodb_local(DEFAULT));
    sources!(when_asked dynamodb_local(DEFAULT));
    ports!(when_asked dynamodb_local(DEFAULT));
    tables!(when_asked dynamodb_local(DEFAULT));
    tables_with_alerts!(when_asked dynamodb_local(DEFAULT));
}

mod on_dynamodb_local_without_room_index {
    ports!(when_asked dynamodb_local(WITHOUT_ROOM_INDEX));
    run! { when_asked dynamodb_local(WITHOUT_ROOM_INDEX): items(table): what_others_left_is_passed_over; }
}
