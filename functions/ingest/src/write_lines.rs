//! `POST /write`, `/api/v2/write` and `/api/v3/write_lp`: stores the line protocol of a request. Parses and maps no
//! line.

use api::{Dialect, Params, Problem, ProblemKind, Response};
use domain::WritableDevices;
use runtime::authentication::Grant;
use runtime::clock::Clock;
use runtime::http::Call;

use crate::formats::line_protocol::Precision;
use crate::formats::line_protocol::mapping::MappingRules;
use crate::intake::sender::RequestSender;
use crate::intake::submission::StoreOptions;
use crate::intake::times::Times;
use crate::limits::counted_sender::CountedSender;
use crate::limits::counted_sender::ReplyDialect;
use crate::pipeline::{Pipeline, Store};
use crate::readings::PlacedReadings;
use crate::readings::line_points::Reader;
use crate::replies::influxdb::{self, WrittenLines};
use crate::store_request::StoreRequest;

impl<C: Clock> Pipeline<C> {
    /// Stores the lines of a request, and names the refused lines.
    pub(crate) async fn write_lines(
        &self,
        call: Call<'_, impl Store, Self>,
    ) -> Result<Response, Problem> {
        let Call { endpoint, request, params, grant, session, log, .. } = call;
        let dialect = endpoint.dialect().unwrap_or(Dialect::V1);
        let body = request.line_protocol_body()?;
        let reader = Reader {
            precision: precision(&params, dialect)?,
            rules: rules(&params, &grant)?,
            sender: RequestSender::of(&grant),
            times: Times::new(request.arrived.unwrap_or_else(|| self.clock.now()), &self.settings),
        };

        let mut points = reader.read(&body)?;
        log.set("lines.sent", points.lines.len());
        let all_or_nothing = params.get("accept_partial") == Some("false");
        let mut assembled = std::mem::take(&mut points.assembled);
        if all_or_nothing && !assembled.rejected.is_empty() {
            assembled.timed = PlacedReadings::default();
        }

        assembled.rejected.sort_by_key(|refusal| refusal.index);

        // Points are merged into a stored reading and never replace its other metrics.
        let options = StoreOptions { merge: true, all_or_nothing, ..StoreOptions::default() };
        let counted_sender = CountedSender::of(&grant, &self.settings, ReplyDialect::InfluxDb);
        let request = StoreRequest {
            counted_sender: counted_sender.as_ref(),
            ..StoreRequest::new(assembled, options)
        };

        let report = self.store(session, request, log).await;
        if all_or_nothing && let Some(first) = report.rejected.first() {
            return Ok(influxdb::refuse_all(dialect, &points, first));
        }

        log.set("points.merged", points.merged);
        log.set("strings.skipped", points.strings);
        Ok(influxdb::respond(dialect, &WrittenLines { points, report }))
    }
}

fn precision(params: &Params, dialect: Dialect) -> Result<Precision, Problem> {
    match params.get("precision") {
        None | Some("") if dialect == Dialect::V3 => Ok(Precision::Auto),
        None | Some("") => Ok(Precision::Nanosecond),
        Some(name) => Precision::parse(name).ok_or_else(|| {
            let detail = "invalid precision; valid precision units are ns, us, ms, and s";
            Problem::new(ProblemKind::BadRequest, detail)
        }),
    }
}

/// The settings for mapping lines: parameters of the request override settings of the token.
fn rules(params: &Params, grant: &Grant) -> Result<MappingRules, Problem> {
    let mut rules = MappingRules::default();
    if let Some(scope) = grant.writing() {
        rules.device = RequestSender::Holder(&scope.devices).only_device().cloned();
        if let WritableDevices::Prefix(prefix) = &scope.devices {
            rules.prefix = Some(prefix.clone());
        }
        rules.device_tags.clone_from(&scope.device_tags);
        rules.room_tag.clone_from(&scope.room_tag);
    }

    if let Some(tags) = params.words("device_tags")? {
        rules.device_tags = tags.into_iter().map(ToOwned::to_owned).collect();
    }

    rules.room_tag = params.get("room_tag").map(ToOwned::to_owned).or(rules.room_tag);
    Ok(rules)
}
