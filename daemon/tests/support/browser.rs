//! Chromium without a window, driven over the pipe of its DevTools protocol: messages are JSON, each with a zero byte
//! behind it. <https://chromedevtools.github.io/devtools-protocol/>

use std::cell::{Cell, RefCell};
use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

/// Names of the program.
const PROGRAMS: [&str; 4] = ["chromium", "chromium-browser", "google-chrome-stable", "google-chrome"];
/// No window, no traffic of its own, and no sandbox: it has to run as root, too, and opens only pages of ours.
const ARGUMENTS: [&str; 14] = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--disable-breakpad",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-default-apps",
    "--disable-sync",
    "--hide-scrollbars",
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
    "--remote-debugging-pipe",
];
/// More than the longest wait takes, by far.
const PATIENCE: Duration = Duration::from_secs(60);

/// A browser of its own, with one page; it ends with the test.
pub(crate) struct Browser {
    child: Child,
    commands: RefCell<ChildStdin>,
    /// Its messages, read by a thread.
    answers: Receiver<Value>,
    last_id: Cell<u64>,
    session: String,
    /// Events of the page that came while an answer was waited for.
    happened: RefCell<Vec<Value>>,
    _folder: tempfile::TempDir,
}

impl Browser {
    /// Starts a browser. Panics where there is none.
    pub(crate) fn start() -> Self {
        let program = find().unwrap_or_else(|| panic!("none of {PROGRAMS:?} is in PATH"));
        let mut browser = Self::spawn(&program);
        let target = browser.call("Target.createTarget", &json!({ "url": "about:blank" }));
        let attached =
            browser.call("Target.attachToTarget", &json!({ "targetId": target["targetId"], "flatten": true }));
        browser.session = attached["sessionId"].as_str().unwrap().to_owned();
        for domain in ["Runtime", "Log", "Network", "Page"] {
            browser.call(&format!("{domain}.enable"), &json!({}));
        }
        browser.set_size(1280, 900);
        browser
    }

    fn spawn(program: &PathBuf) -> Self {
        let folder = tempfile::tempdir().unwrap();
        // Chromium reads from descriptor 3 and writes to 4; only a shell can give it these without unsafe code.
        let mut child = Command::new("sh")
            .args(["-c", r#"exec "$0" "$@" 3<&0 4>&1 </dev/null >/dev/null 2>&1"#])
            .arg(program)
            .args(ARGUMENTS)
            .arg(format!("--user-data-dir={}", folder.path().display()))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let commands = RefCell::new(child.stdin.take().unwrap());
        let messages = BufReader::new(child.stdout.take().unwrap()).split(0);
        let (sender, answers) = channel();
        std::thread::spawn(move || {
            let objects = messages.map_while(Result::ok).map(|message| serde_json::from_slice(&message).unwrap());
            objects.into_iter().try_for_each(|object: Value| sender.send(object))
        });
        let session = String::new();
        Self { child, commands, answers, last_id: Cell::new(0), session, happened: RefCell::default(), _folder: folder }
    }

    /// Calls a method of the browser, and returns its result.
    #[track_caller]
    fn call(&self, method: &str, parameters: &Value) -> Value {
        let answer = self.ask(method, parameters);
        assert!(answer.get("error").is_none(), "{method}: {answer}");
        answer["result"].clone()
    }

    #[track_caller]
    fn ask(&self, method: &str, parameters: &Value) -> Value {
        let id = self.last_id.get() + 1;
        self.last_id.set(id);
        let mut command = json!({ "id": id, "method": method, "params": parameters });
        if !self.session.is_empty() {
            command["sessionId"] = self.session.as_str().into();
        }
        self.commands.borrow_mut().write_all(format!("{command}\0").as_bytes()).unwrap();
        self.next_message(&format!("an answer to {method}"), |message| message["id"] == id)
    }

    /// The next message of a kind; messages before it are kept.
    #[track_caller]
    fn next_message(&self, what: &str, is_wanted: impl Fn(&Value) -> bool) -> Value {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let message = self.answers.recv_timeout(deadline.saturating_duration_since(Instant::now()));
            let message = message.unwrap_or_else(|error| panic!("{what} does not come from Chromium: {error}"));
            if is_wanted(&message) {
                return message;
            }
            self.happened.borrow_mut().push(message);
        }
    }

    /// Opens a page, and waits until it is loaded: calls before that may be lost with the page that they were meant
    /// for.
    pub(crate) fn open(&self, url: &str) {
        self.call("Page.navigate", &json!({ "url": url }));
        self.next_message("the page", |message| message["method"] == "Page.loadEventFired");
    }

    /// Makes the window so large, in CSS pixels.
    pub(crate) fn set_size(&self, width: u32, height: u32) {
        let size = json!({ "width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 500 });
        self.call("Emulation.setDeviceMetricsOverride", &size);
    }

    /// Emulates a reader's preference for a dark or a light page.
    pub(crate) fn set_dark(&self, dark: bool) {
        let scheme = if dark { "dark" } else { "light" };
        let features = json!({ "features": [{ "name": "prefers-color-scheme", "value": scheme }] });
        self.call("Emulation.setEmulatedMedia", &features);
    }

    /// The value of an expression on the page.
    #[track_caller]
    pub(crate) fn value(&self, expression: &str) -> Value {
        self.evaluate(expression).unwrap_or_else(|error| panic!("{expression}: {error}"))
    }

    /// Waits until an expression is true on the page.
    #[track_caller]
    pub(crate) fn wait_until(&self, expression: &str) {
        let deadline = Instant::now() + PATIENCE;
        // The page polls, and returns now and then so that a wait can end.
        let looking = format!(
            "(async () => {{ for (let left = 100; left > 0; left--) {{ if ({expression}) return true; \
             await new Promise(next => setTimeout(next, 50)); }} return false; }})()"
        );
        while self.value(&looking) != true {
            let shown = || self.value("document.body.innerText");
            assert!(Instant::now() < deadline, "it never came to {expression}; the page says {}", shown());
        }
    }

    fn evaluate(&self, expression: &str) -> Result<Value, String> {
        let how = json!({ "expression": expression, "returnByValue": true, "awaitPromise": true });
        let answer = self.ask("Runtime.evaluate", &how);
        match (answer.get("error"), answer["result"].get("exceptionDetails")) {
            (None, None) => Ok(answer["result"]["result"]["value"].clone()),
            _ => Err(answer.to_string()),
        }
    }

    /// Presses a key, with the page's focus where it is.
    pub(crate) fn press(&self, key: &str) {
        for kind in ["rawKeyDown", "keyUp"] {
            let code = if key == "Tab" { 9 } else { 0 };
            self.call("Input.dispatchKeyEvent", &json!({ "type": kind, "key": key, "windowsVirtualKeyCode": code }));
        }
    }

    /// Complaints of the page and the browser so far: errors of the script and the policy, and resources that were not
    /// found.
    pub(crate) fn complaints(&self) -> Vec<Value> {
        self.value("0"); // everything said before the answer has been read then
        let happened = self.happened.borrow();
        let complains = |message: &&Value| {
            ["Runtime.consoleAPICalled", "Runtime.exceptionThrown", "Log.entryAdded"]
                .contains(&message["method"].as_str().unwrap_or_default())
        };
        happened.iter().filter(complains).cloned().collect()
    }

    /// The addresses that the page asked for so far.
    pub(crate) fn requested(&self) -> Vec<String> {
        let happened = self.happened.borrow();
        let asked = happened.iter().filter(|message| message["method"] == "Network.requestWillBeSent");
        asked.map(|message| message["params"]["request"]["url"].as_str().unwrap().to_owned()).collect()
    }

    /// Writes a picture of the whole page to the folder that `MINGLE_PICTURES` names, where it is set.
    pub(crate) fn picture(&self, name: &str) {
        let Some(folder) = std::env::var_os("MINGLE_PICTURES").map(PathBuf::from) else { return };
        let taken = self.call("Page.captureScreenshot", &json!({ "format": "png", "captureBeyondViewport": true }));
        let bytes = data_encoding::BASE64.decode(taken["data"].as_str().unwrap().as_bytes()).unwrap();
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join(name).with_extension("png"), bytes).unwrap();
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        // Chromium ends its other processes with itself; it may be gone already.
        let _ = self.commands.borrow_mut().write_all(b"{\"id\":0,\"method\":\"Browser.close\"}\0");
        let deadline = Instant::now() + Duration::from_secs(10);
        while self.answers.recv_timeout(deadline.saturating_duration_since(Instant::now())).is_ok() {}
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn find() -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    let folders: Vec<PathBuf> = std::env::split_paths(&path).collect();
    PROGRAMS.iter().find_map(|name| folders.iter().map(|folder| folder.join(name)).find(|file| file.is_file()))
}
