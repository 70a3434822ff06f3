//! Requests of the API off the wire: the first byte says which, the message follows. What is read
//! is written as it is read.

use ebbtide_proto::v1;
use prost::Message;

fn round<M: Message + Default>(bytes: &[u8]) {
    if let Ok(message) = M::decode(bytes) {
        let written = message.encode_to_vec();
        assert_eq!(written.len(), message.encoded_len());
        let again = M::decode(written.as_slice()).expect("what was written can be read");
        // The entries of maps have no order, their number of bytes has none either.
        assert_eq!(again.encoded_len(), written.len());
    }
}

macro_rules! by_number {
    ($number:expr, $bytes:expr, $($kind:ident)+) => {{
        const KINDS: &[fn(&[u8])] = &[$(round::<v1::$kind>),+];
        KINDS[usize::from($number) % KINDS.len()]($bytes);
    }};
}

pub(super) fn run(bytes: &[u8]) {
    let Some((kind, message)) = bytes.split_first() else {
        return;
    };
    by_number!(*kind, message,
        CreateServersRequest CreateFlavorRequest PutAggregateRequest AdoptServerRequest ListEvacuationsRequest
        SelectDestinationsRequest WhatIfRequest ExplainRequest ListDecisionsRequest WatchRequest RegionSummaryRequest
        ListHostsRequest GetHostRequest DisableHostRequest EnableHostRequest ListFlavorsRequest GetFlavorRequest
        DeleteFlavorRequest ListAggregatesRequest DeleteAggregateRequest PutBudgetRequest ListBudgetsRequest
        DeleteBudgetRequest AuditRequest GetServerRequest ListServersRequest DeleteServerRequest ReleaseServerRequest
        CreateServerGroupRequest ListServerGroupsRequest DeleteServerGroupRequest GetEvacuationRequest
        ListPluginsRequest AddPluginRequest RemovePluginRequest ChangePluginRequest ShadowReportRequest RecordRegionRequest
        UseCostModuleRequest ListLivesRequest ListBillsRequest GetAdviceRequest ListBilledHoursRequest
        ReclaimHostRequest GetReclaimRequest ReturnHostRequest RemoveHostRequest ReadmitHostRequest ReconcileRequest);
}
