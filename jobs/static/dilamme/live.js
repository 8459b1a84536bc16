/*
 * Keeps the badges of a page up to date over a websocket. It only reads, and it writes text, classes and `hidden`:
 * nothing that comes over the socket is ever parsed as HTML. Without it the pages show what was true when they loaded.
 *
 * The server sends {"jobs": [[id, status, attempt], ...], "complete": bool, "seq": n}; the answer to a question also
 * has "newer", the number of jobs made after the newest one on the page. "new" says that there may be some.
 */
"use strict";

(() => {
    const WATCHED = 200; // the server takes no more
    const ASK_EVERY = 15000; // ms; heals whatever was lost on the way
    const ASK_PAUSE = 2000; // ms between two questions
    const FIRST_DELAY = 1000; // ms until the first reconnect; doubled each time
    const LONGEST_DELAY = 30000;
    const REFUSED = [4400, 4401, 4403]; // close codes after which trying again is of no use
    const STATUS = /^[a-z]+$/;

    class LiveView {
        constructor(root) {
            this.root = root;
            this.state = root.querySelector("[data-dilamme-state]");
            this.hint = root.querySelector("[data-dilamme-hint]");
            this.badges = badgesById();
            this.changed = new Set();
            this.newer = 0;
            this.seq = null;
            this.delay = FIRST_DELAY;
            this.asked = 0;
            this.question = null;
            root.hidden = false;
        }

        connect() {
            this.show("connecting", "Connecting");
            const address = new URL(this.root.dataset.dilammeSocket, window.location.href);
            address.protocol = address.protocol === "https:" ? "wss:" : "ws:";
            this.socket = new WebSocket(address);
            this.socket.addEventListener("open", () => this.opened());
            this.socket.addEventListener("message", (event) => this.hear(JSON.parse(event.data)));
            this.socket.addEventListener("close", (event) => this.closed(event.code));
        }

        opened() {
            this.delay = FIRST_DELAY;
            this.seq = null;
            this.ask();
        }

        closed(code) {
            this.show("offline", "Offline");
            if (REFUSED.includes(code)) {
                return;
            }
            // At random, so that all browsers do not come back at once after a restart of the server.
            window.setTimeout(() => this.connect(), this.delay * (0.5 + Math.random() / 2));
            this.delay = Math.min(this.delay * 2, LONGEST_DELAY);
        }

        /* Ask where all jobs of the page stand: at once, or a moment after the last time. */
        ask() {
            window.clearTimeout(this.question);
            const pause = Math.max(0, this.asked + ASK_PAUSE - Date.now());
            this.question = window.setTimeout(() => this.send(), this.seq === null ? 0 : pause);
        }

        send() {
            if (this.socket.readyState === WebSocket.OPEN) {
                this.asked = Date.now();
                this.socket.send(JSON.stringify({watch: [...this.badges.keys()].slice(0, WATCHED)}));
            }
            this.question = window.setTimeout(() => this.send(), ASK_EVERY);
        }

        hear(message) {
            const isAnswer = "newer" in message;
            if (!isAnswer && (this.seq === null || message.seq <= this.seq)) {
                return; // the answer has it already
            }
            const missed = !isAnswer && (message.seq !== this.seq + 1 || !message.complete);
            this.seq = message.seq;
            message.jobs.forEach(([id, status]) => this.update(id, status));
            if (isAnswer) {
                this.newer = message.newer;
                this.show("live", "Live");
            }
            if (missed || message.new) {
                this.ask();
            }
            this.showHint();
        }

        update(id, status) {
            for (const badge of this.badges.get(id) ?? []) {
                if (STATUS.test(status) && !badge.classList.contains(`dilamme-status-${status}`)) {
                    badge.className = `dilamme-badge dilamme-status-${status} dilamme-moved`;
                    badge.textContent = status[0].toUpperCase() + status.slice(1);
                    this.changed.add(id);
                }
            }
        }

        show(state, text) {
            this.root.dataset.dilammeLive = state;
            this.state.textContent = text;
        }

        showHint() {
            const parts = [];
            if ("dilammeNewest" in this.root.dataset && this.newer > 0) {
                parts.push(this.newer >= 100 ? "100 or more new jobs" : counted(this.newer, "new job"));
            }
            if (this.changed.size > 0) {
                parts.push(this.badges.size > 1 ? `${this.changed.size} changed` : "This job has changed");
            }
            this.hint.textContent = parts.length > 0 ? `${parts.join(", ")}: reload` : "";
            this.hint.hidden = parts.length === 0;
        }
    }

    function badgesById() {
        const badges = new Map();
        for (const badge of document.querySelectorAll("[data-dilamme-job]")) {
            const id = badge.dataset.dilammeJob;
            badges.set(id, [...(badges.get(id) ?? []), badge]);
        }
        return badges;
    }

    function counted(number, noun) {
        return `${number} ${noun}${number === 1 ? "" : "s"}`;
    }

    const root = document.querySelector("[data-dilamme-live]");
    if (root !== null) {
        new LiveView(root).connect();
    }
})();
