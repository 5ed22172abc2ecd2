//! The ports of the table that the function uses.

use table::{
    AddToken, DeleteAlertStates, DeleteReadings, EditAlertRules, EditAlertStates, EditAnnotations,
    EditChannels, EditRegistry, EditSources, EditTariffs, FindRegistry, FindToken, ListDevices,
    LookUpRegistry, MarkDeletions, MarkIndexed, MarkLateChanges, NoteRechecks, PageRegistry,
    PutConditionsSchema, PutJudgements, PutTestMessages, QueryConditions, QueryReadings,
    QueryRoomReadings, ReadAlertRules, ReadAlertStates, ReadAnnotations, ReadChannels,
    ReadConditionsSchema, ReadLateChanges, ReadRefold, ReadRegistry, ReadRollupState, ReadRollups,
    ReadRunning, ReadSeen, ReadStays, ReadTariffs, ReadToldMessages, ReadWaitingMessages,
    RemoveBelongings, RemoveRooms, SearchDevices,
};

table::store! {
    /// The ports of the table that the function uses.
    pub trait Store: ReadRegistry + ListDevices + PageRegistry + LookUpRegistry + FindRegistry
        + SearchDevices + MarkIndexed + EditRegistry + MarkDeletions + RemoveBelongings + RemoveRooms
        + FindToken + AddToken + ReadAnnotations + EditAnnotations + QueryReadings + QueryRoomReadings
        + DeleteReadings + ReadRollups + ReadRollupState + ReadRefold
        + ReadStays + ReadConditionsSchema + PutConditionsSchema + QueryConditions + ReadLateChanges + MarkLateChanges + ReadSeen
        + ReadAlertRules + EditAlertRules + ReadChannels + EditChannels + ReadAlertStates + EditAlertStates
        + EditSources + ReadTariffs + EditTariffs + DeleteAlertStates + PutJudgements + ReadRunning + NoteRechecks + ReadToldMessages + ReadWaitingMessages + PutTestMessages
}
