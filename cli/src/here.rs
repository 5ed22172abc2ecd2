//! The data of a directory, opened by this process for an import: days that are over are stored with their rollups at
//! once. Reads no file of readings.

use std::path::Path;
use std::sync::Arc;

use http::Request;
use local::{Data, Loader, Options, System};
use tokio::runtime::Handle;

use crate::ask::{Answer, Ask, Units};
use crate::output::print;
use crate::serve::machine_zone;

/// The data, which no other process can open meanwhile.
#[derive(Debug)]
pub(crate) struct Here {
    system: System,
    loader: Loader,
    runtime: Handle,
    name: String,
}

impl Here {
    /// Opens the data in a directory, and makes them where they are missing.
    pub(crate) async fn open(directory: &Path) -> anyhow::Result<Arc<Self>> {
        let options = Options {
            data: Data::Dir(directory.to_owned()),
            listens: false,
            time_zone: machine_zone(),
            ..Options::default()
        };
        let system = Box::pin(System::start(options)).await?;
        if system.is_empty()? {
            let (name, zone) = (directory.display(), system.time_zone());
            let other = "another: `roomtide --empty --time-zone ZONE` once, before";
            print(format_args!("{name} is new; its days are those of {zone}, for ever ({other})"));
        }
        let loader = Box::pin(system.loader()).await?;
        let name = directory.display().to_string();
        Ok(Arc::new(Self { system, loader, runtime: Handle::current(), name }))
    }

    /// Returns the directory's name.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Sends a request. Blocks, so not for a thread of the runtime.
    pub(crate) fn send(&self, ask: Ask<'_>) -> anyhow::Result<Answer> {
        let mut request = Request::builder().method(ask.method).uri(ask.path);
        for (name, value) in ask.headers {
            request = request.header(*name, value);
        }
        let body = ask.body.map(|(content_type, body)| (content_type, body.as_bytes().to_vec()));
        if let Some((content_type, _)) = &body {
            request = request.header("content-type", *content_type);
        }
        let request = request.body(body.map(|(_, body)| body).unwrap_or_default())?;
        let (parts, body) = self.runtime.block_on(self.loader.send(request))?.into_parts();
        let text = String::from_utf8(body)?;
        Ok(Answer { status: parts.status.as_u16(), text, units: Units::of(&parts.headers) })
    }

    /// Stores what was sent. Blocks.
    pub(crate) fn store(&self) -> anyhow::Result<()> {
        self.runtime.block_on(self.loader.store())
    }

    /// Closes the data, if nobody else uses them.
    pub(crate) async fn close(here: Arc<Self>) -> anyhow::Result<()> {
        match Arc::into_inner(here) {
            Some(Self { system, loader, .. }) => {
                drop(loader);
                system.shutdown().await
            }
            None => Ok(()),
        }
    }
}
