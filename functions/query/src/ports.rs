//! The ports of the table that the function uses.

use table::{
    DeleteAlertStates, DeleteReadings, EditRegistry, FindRegistry, FindToken, ListDevices,
    LookUpRegistry, MarkDeletions, MarkIndexed, MarkLateChanges, NoteLooks, PageRegistry,
    PutConditionsSchema, QueryConditions, QueryReadings, QueryRoomReadings, ReadAlertStates,
    ReadConditionsSchema, ReadLateChanges, ReadRegistry, ReadRollupState, ReadRollups, ReadSeen,
    ReadStays, RemoveBelongings, RemoveRooms, SearchDevices,
};

table::store! {
    /// The ports of the table that the function uses.
    pub trait Store: ReadRegistry + ListDevices + PageRegistry + LookUpRegistry + FindRegistry
        + SearchDevices + MarkIndexed + EditRegistry + MarkDeletions + RemoveBelongings + RemoveRooms + FindToken
        + QueryReadings + QueryRoomReadings + DeleteReadings + ReadRollups + ReadRollupState
        + ReadStays + ReadConditionsSchema + PutConditionsSchema + QueryConditions + ReadLateChanges + MarkLateChanges + ReadSeen
        + NoteLooks + ReadAlertStates + DeleteAlertStates
}
