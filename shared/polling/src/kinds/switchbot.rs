//! SwitchBot: the list of devices, and the state of each.
//!
//! Source: <https://github.com/OpenWonderLabs/SwitchBotAPI>. All programs of an account may make 10,000 requests a day
//! together. A state has no time, so the time of the request is stored.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use chrono::TimeDelta;
use hmac::{Hmac, KeyInit as _, Mac as _};
use serde_json::Value;
use sha2::Sha256;

use crate::directory::{DeviceDirectory, DirectoryDevice};
use crate::kind::{Own, PLAIN, Signing, SourceKind, SourceMember, SourceMemberForm};
use crate::secrets::SecretTexts;

pub(super) const SWITCHBOT: SourceKind = SourceKind {
    name: "switchbot",
    title: "SwitchBot",
    hint: "In the app: Profile, Preferences, About, tap the version ten times, Developer Options. The token can also \
           open locks.",
    members: &[
        SourceMember::secret("token", "the token"),
        SourceMember::secret("secret", "the secret key beside it"),
        SourceMember::optional(
            "calls",
            "the most requests a day, fewer if another program asks too; 9000 without it",
            SourceMemberForm::Number(100, 10_000),
        ),
    ],
    every: TimeDelta::minutes(1),
    recipe: r#"[
        {"url": "https://api.switch-bot.com/v1.1/devices", "format": "switchbot"},
        {"url": "https://api.switch-bot.com/v1.1/devices/{device}/status", "format": "switchbot"}
    ]"#,
    sign: Some(sign),
    directory: Some(DeviceDirectory { every: TimeDelta::hours(1), read: listed }),
    judge,
    ..PLAIN
};

/// Signs the token, the time and the nonce with the secret key.
fn sign(secrets: &SecretTexts, signing: &Signing) -> Vec<(&'static str, String)> {
    let token = secrets.get("token").unwrap_or_default();
    let key = secrets.get("secret").unwrap_or_default();
    let (time, nonce) = (signing.now.as_millis().to_string(), signing.nonce.clone());

    let mut hmac = Hmac::<Sha256>::new_from_slice(key.as_bytes()).expect("any length is taken");
    hmac.update(format!("{token}{time}{nonce}").as_bytes());
    let sign = STANDARD.encode(hmac.finalize().into_bytes());
    vec![("authorization", token.to_owned()), ("t", time), ("nonce", nonce), ("sign", sign)]
}

/// The devices that have a state. Infrared remotes are in another list.
fn listed(answer: &Value) -> Vec<DirectoryDevice> {
    let devices = answer.pointer("/body/deviceList").and_then(Value::as_array);
    let devices =
        devices.into_iter().flatten().filter(|device| device["enableCloudService"] != false);
    let listed = devices.filter_map(|device| {
        let id = device["deviceId"].as_str()?.to_owned();
        let name = device["deviceName"].as_str().unwrap_or_default().to_owned();
        Some(DirectoryDevice { id, name, is_silent: false })
    });
    listed.collect()
}

/// Recognizes errors, which come with the status 200. The code 190 has several meanings, which only the message tells
/// apart: <https://github.com/OpenWonderLabs/SwitchBotAPI/issues/162>.
fn judge(_: u16, body: &Value) -> Option<Own> {
    let code = body["statusCode"].as_i64().filter(|code| *code != 100)?;
    let message = body["message"].as_str().unwrap_or_default().to_ascii_lowercase();
    Some(match code {
        190 if message.contains("daily limit") => {
            Own::Limited("has answered as often today as it does in a day".to_owned())
        }
        code => Own::Failing(format!("answers the status code {code}")),
    })
}

#[cfg(test)]
mod tests {
    use domain::given::at;
    use serde_json::json;

    use super::*;

    /// The signature was made by Python's hmac.
    #[test]
    fn a_request_is_signed_as_the_maker_documents_it() {
        let secrets = [("token", "token"), ("secret", "secret")];
        let secrets = SecretTexts::of(secrets.map(|(n, v)| (n.to_owned(), v.to_owned())).into());
        let signing = Signing { now: at("2026-01-11T16:00:00Z"), nonce: "n".to_owned() };
        let signed = sign(&secrets, &signing);
        assert_eq!(signed[1], ("t", "1768147200000".to_owned()));
        assert_eq!(signed[3], ("sign", SIGNATURE.to_owned()));
    }

    const SIGNATURE: &str = "YgO0Iykyz+JhwG5j+z766bH4rS8FU1mbvTXvo3pAejQ=";

    #[test]
    fn a_list_has_the_devices_that_the_cloud_knows() {
        let answer = json!({"statusCode": 100, "body": {"deviceList": [
            {"deviceId": "C0FFEE000001", "deviceName": "Desk", "enableCloudService": true},
            {"deviceId": "C0FFEE000002", "deviceName": "Bot", "enableCloudService": false},
            {"deviceName": "without an id"}
        ], "infraredRemoteList": [{"deviceId": "02-1"}]}});
        let listed = listed(&answer);
        assert_eq!(listed.len(), 1);
        assert_eq!((listed[0].id.as_str(), listed[0].name.as_str()), ("C0FFEE000001", "Desk"));
    }

    #[test]
    fn an_error_inside_a_good_answer_is_found() {
        let limit =
            json!({"statusCode": 190, "body": {}, "message": "Requests reached the daily limit"});
        assert!(matches!(judge(200, &limit), Some(Own::Limited(_))));
        let offline = json!({"statusCode": 190, "message": "device not synchronized"});
        assert!(matches!(judge(200, &offline), Some(Own::Failing(_))));
        assert_eq!(judge(200, &json!({"statusCode": 100, "body": {}})), None);
    }
}
