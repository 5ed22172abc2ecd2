//! The ports of the table that the function uses.

use table::{
    AddToken, DeleteReadings, EditAnnotations, EditRegistry, FindRegistry, FindToken, ListDevices,
    LookUpRegistry, MarkDeletions, MarkIndexed, MarkLateChanges, PageRegistry, PutConditionsSchema,
    QueryConditions, QueryReadings, QueryRoomReadings, ReadAnnotations, ReadConditionsSchema,
    ReadLateChanges, ReadRegistry, ReadRollupState, ReadRollups, ReadSeen, ReadStays,
    RemoveBelongings, RemoveRooms, SearchDevices,
};

table::store! {
    /// The ports of the table that the function uses.
    pub trait Store: ReadRegistry + ListDevices + PageRegistry + LookUpRegistry + FindRegistry
        + SearchDevices + MarkIndexed + EditRegistry + MarkDeletions + RemoveBelongings + RemoveRooms + FindToken + AddToken + ReadAnnotations + EditAnnotations
        + QueryReadings + QueryRoomReadings + DeleteReadings + ReadRollups + ReadRollupState
        + ReadStays + ReadConditionsSchema + PutConditionsSchema + QueryConditions + ReadLateChanges + MarkLateChanges + ReadSeen
}
