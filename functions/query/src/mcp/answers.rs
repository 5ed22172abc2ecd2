//! The answer of each tool: asks the API, and chooses what the model gets. Reads no arguments.

use api::endpoints::{self, Function, METRIC_PREFIX};
use api::{Params, Problem, ProblemKind, Request};
use runtime::http::Handler as _;
use serde_json::{Map, Value, json};

use super::arguments::ToolRequest;
use super::shorten::{cut_beside, cut_rows, fitting};
use crate::ports::Store;
use crate::shared_state::{Call, SharedState};

/// The maximum number of rooms that are shown beside a list of devices.
const MAX_ROOMS: usize = 100;

/// The kinds of a tool's answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ToolAnswer {
    /// Rooms, and devices with their metrics.
    Places,
    /// Devices with their metrics.
    Devices,
    /// Devices with the newest values of their metrics.
    Latest,
    /// Rows whose answer already has the units of their metrics.
    Rows,
    /// Rows whose units are looked up in the registry.
    RowsOfMetrics,
    /// The health of the system.
    Health,
}

/// Sends a tool's requests to the API, with the token and the invocation of the MCP request.
pub(super) struct ToolApi<'c, 'a, S> {
    pub(super) call: &'c mut Call<'a, S>,
}

impl<S: Store> ToolApi<'_, '_, S> {
    /// Answers a tool by requests to the API.
    pub(super) async fn answer(
        &mut self,
        answer: ToolAnswer,
        mut request: ToolRequest,
    ) -> Result<Map<String, Value>, Problem> {
        match answer {
            ToolAnswer::Places => Box::pin(self.places(request)).await,
            ToolAnswer::Devices => Box::pin(self.devices(request, compact)).await,
            ToolAnswer::Latest => Box::pin(self.latest(request)).await,
            ToolAnswer::Rows => Box::pin(self.rows(request)).await,
            ToolAnswer::RowsOfMetrics => Box::pin(self.rows_of_metrics(request)).await,
            ToolAnswer::Health => {
                request.query.push(("details".to_owned(), "true".to_owned()));
                let health = self.get(&request.path, &request.query).await?;
                let (status, rollups) = (health["status"].clone(), health["rollups"].clone());
                Ok(members(json!({"status": status, "rollups": rollups})))
            }
        }
    }

    /// Rows, with the units of the requested metrics. If the request names no metric, the answer has the units of the
    /// metrics in the rows.
    async fn rows_of_metrics(
        &mut self,
        request: ToolRequest,
    ) -> Result<Map<String, Value>, Problem> {
        let names = metrics(&request);
        let mut units = self.units(&request.path).await?;
        let mut answer = self.rows(request).await?;
        units.retain(|name, _| {
            if names.is_empty() { is_named(&answer["rows"], name) } else { names.contains(name) }
        });
        answer.insert("units".to_owned(), Value::Object(units));
        Ok(answer)
    }

    /// Rooms, and the devices in them.
    async fn places(&mut self, request: ToolRequest) -> Result<Map<String, Value>, Problem> {
        let of_rooms =
            format!("{}/rooms", request.path.strip_suffix("/devices").unwrap_or_default());
        let is_first = !request.query.iter().any(|(name, _)| name == "cursor");
        let is_of_room = request.path.starts_with("/rooms/");

        let mut answer = self.devices(request, compact).await?;
        if is_first && !is_of_room {
            let query = [("limit".to_owned(), MAX_ROOMS.to_string())];
            let rooms = self.get(&of_rooms, &query).await?;
            let room = |row: &Value| picked(row, &["room_id", "name", "home"]);
            answer.insert("rooms".to_owned(), data(&rooms).iter().map(room).collect());
            if rooms["has_more"] == true {
                let how = format!(
                    "These are {MAX_ROOMS} rooms, and there are more: devices name theirs."
                );
                answer.insert("more_rooms".to_owned(), json!({"how": how}));
            }
        }

        Ok(answer)
    }

    /// A page of devices. If it is too large, the page is requested again with fewer devices, so that the cursor
    /// follows the last shown device.
    async fn devices(
        &mut self,
        request: ToolRequest,
        shape: impl Fn(&Value) -> Value + Send,
    ) -> Result<Map<String, Value>, Problem> {
        let mut limit = request.limit;
        loop {
            let mut query = request.query.clone();
            query.push(("limit".to_owned(), limit.to_string()));
            let page = self.get(&request.path, &query).await?;
            let rows: Vec<Value> = data(&page).iter().map(&shape).collect();
            let fitting = fitting(&rows);
            if fitting < rows.len() {
                limit = fitting;
                continue;
            }

            let mut answer = members(json!({"devices": rows}));
            if let Some(cursor) = page["next_cursor"].as_str() {
                let how = "There are more devices: call the tool again with the same arguments and this cursor, or with \
                           narrower ones.";
                answer.insert("more".to_owned(), json!({"cursor": cursor, "how": how}));
            }
            return Ok(answer);
        }
    }

    /// The newest values of one device, or of each device of a room, of a home or of the registry.
    async fn latest(&mut self, mut request: ToolRequest) -> Result<Map<String, Value>, Problem> {
        let wanted = request.remove("metric");
        let wanted: Option<Vec<&str>> =
            wanted.as_deref().map(|names| names.split(',').map(str::trim).collect());
        let is_wanted = |name: &str| wanted.as_ref().is_none_or(|names| names.contains(&name));

        if request.path.starts_with("/devices/") {
            let mut device = self.get(&request.path, &[]).await?;
            device["latest"] = self.get(&format!("{}/latest", request.path), &[]).await?;
            return Ok(members(json!({"devices": [newest(&device, is_wanted)]})));
        }

        request.query.push(("latest".to_owned(), "true".to_owned()));
        let mut answer = self.devices(request, |device| newest(device, is_wanted)).await?;
        if wanted.is_some()
            && let Some(Value::Array(devices)) = answer.get_mut("devices")
        {
            devices.retain(|device| {
                device["values"].as_object().is_some_and(|values| !values.is_empty())
            });
        }
        Ok(answer)
    }

    /// Rows by time, and the other members of the API's answer.
    async fn rows(&mut self, request: ToolRequest) -> Result<Map<String, Value>, Problem> {
        let mut answer = members(self.get(&request.path, &request.query).await?);
        cut_rows(&mut answer, request.offset, request.limit);
        cut_beside(&mut answer);
        Ok(answer)
    }

    /// The unit of each metric of the device or devices that the path names; a list of units if devices differ.
    async fn units(&mut self, path: &str) -> Result<Map<String, Value>, Problem> {
        let of = path.rsplit_once('/').map_or(path, |(of, _)| of);
        let devices = if of.starts_with("/devices/") {
            vec![self.get(of, &[]).await?]
        } else {
            let query = [("limit".to_owned(), "1000".to_owned())];
            data(&self.get(&format!("{of}/devices"), &query).await?).to_vec()
        };
        let mut units: Map<String, Value> = Map::new();

        for (name, info) in
            devices.iter().filter_map(|device| device["metrics"].as_object()).flatten()
        {
            let unit = &info["unit"];
            match units.get_mut(name) {
                None => drop(units.insert(name.clone(), unit.clone())),
                Some(Value::Array(known)) if !known.contains(unit) => known.push(unit.clone()),
                Some(Value::Array(_)) => {}
                Some(known) if known == unit => {}
                Some(known) => *known = json!([known.clone(), unit]),
            }
        }

        Ok(units)
    }

    /// The JSON answer to `GET` of a path.
    async fn get(&mut self, path: &str, query: &[(String, String)]) -> Result<Value, Problem> {
        let call = &mut *self.call;
        let raw_query =
            form_urlencoded::Serializer::new(String::new()).extend_pairs(query).finish();
        let (method, path) = ("GET".to_owned(), path.to_owned());
        let request = Request { method, path, raw_query, ..Request::default() };

        let (endpoint, id) = endpoints::find(&request, Function::Query)?;
        call.grant.check(endpoint.access)?;
        let params = Params::of(&request, endpoint)?;

        let own_call = Call {
            endpoint,
            id,
            params,
            grant: call.grant.clone(),
            request: &request,
            session: call.session,
            log: &mut *call.log,
            shared: call.shared,
        };

        let response = SharedState::answer(own_call).await?;
        serde_json::from_slice(&response.body).map_err(|_| {
            Problem::new(ProblemKind::Internal, format!("{} answers no JSON.", endpoint.path))
        })
    }
}

/// The metrics that the request names.
fn metrics(request: &ToolRequest) -> Vec<String> {
    let names = request.query.iter().flat_map(|(name, value)| {
        let condition = name.strip_prefix(METRIC_PREFIX);
        let listed = if name == "metric" { value.as_str() } else { "" };
        condition.into_iter().chain(listed.split(',').map(str::trim))
    });
    names.filter(|name| !name.is_empty()).map(ToOwned::to_owned).collect()
}

/// Whether any row names a metric.
fn is_named(rows: &Value, metric: &str) -> bool {
    rows.as_array().is_some_and(|rows| rows.iter().any(|row| row["metric"] == *metric))
}

/// A device with its metrics, without empty members.
fn compact(device: &Value) -> Value {
    let names = ["device_id", "name", "room", "kind", "tags", "attributes", "behind", "first_seen"];
    let mut shown = picked(device, &names);
    let metric = |(name, info): (&String, &Value)| {
        let mut shown = picked(info, &["unit", "role"]);
        if info["kind"] == "counter" {
            shown["kind"] = json!("counter");
        }
        (name.clone(), shown)
    };

    let metrics = device["metrics"].as_object();
    shown["metrics"] = metrics.into_iter().flatten().map(metric).collect::<Map<_, _>>().into();
    shown
}

/// A device with its newest values and their units. A value that is older than the device's newest reading has a
/// timestamp of its own.
fn newest(device: &Value, is_wanted: impl Fn(&str) -> bool) -> Value {
    let mut shown = picked(device, &["device_id", "name", "room"]);
    let latest = &device["latest"];
    let newest = &latest["timestamp"];

    let value = |(name, value): (&String, &Value)| {
        let mut of = json!({"value": value["value"]});
        let unit = &device["metrics"][name.as_str()]["unit"];
        if !unit.is_null() {
            of["unit"] = unit.clone();
        }
        if value["timestamp"] != *newest {
            of["timestamp"] = value["timestamp"].clone();
        }
        (name.clone(), of)
    };

    let values = latest["metrics"].as_object().into_iter().flatten();
    let values: Map<_, _> = values.filter(|(name, _)| is_wanted(name)).map(value).collect();
    shown["timestamp"] = newest.clone();
    shown["values"] = values.into();
    shown
}

/// The named members of an object, without null and empty lists.
fn picked(from: &Value, names: &[&str]) -> Value {
    let says = |value: &&Value| match value {
        Value::Null => false,
        Value::Array(entries) => !entries.is_empty(),
        _ => true,
    };
    let found = names.iter().filter_map(|name| Some((*name, from.get(name).filter(says)?)));
    found.map(|(name, value)| (name.to_owned(), value.clone())).collect::<Map<_, _>>().into()
}

/// The entries of a list's answer.
fn data(page: &Value) -> &[Value] {
    page["data"].as_array().map_or(&[], Vec::as_slice)
}

fn members(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(members) => members,
        _ => Map::new(),
    }
}
