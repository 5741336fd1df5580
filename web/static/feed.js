// feed calls tell() whenever the node pushes something over /v1/ws, and
// state("live" or "lost") as the connection comes and goes. A connection that
// is silent for longer than the server's heartbeat is taken for lost.
const patience = 45000;
const retries = [500, 1000, 2000, 5000];

export function feed(tell, state) {
	let failures = 0;
	let watchdog = 0;

	function connect() {
		const url = new URL("/v1/ws", location.href);
		url.protocol = url.protocol.replace("http", "ws");
		const socket = new WebSocket(url, "holdfast.v1");
		const alive = () => {
			clearTimeout(watchdog);
			watchdog = setTimeout(() => socket.close(), patience);
		};
		socket.onopen = () => {
			failures = 0;
			alive();
			const prefix = document.getElementById("main").dataset.watch;
			socket.send(JSON.stringify(prefix ? { op: "watch", prefix, types: ["grant", "release"] } : { op: "watch" }));
			state("live");
			tell();
		};
		socket.onmessage = (message) => {
			alive();
			if (JSON.parse(message.data).push !== "hb") tell();
		};
		socket.onclose = () => {
			clearTimeout(watchdog);
			state("lost");
			tell(); // the page may still be had, where only what stands between cuts WebSockets
			const pause = retries[Math.min(failures++, retries.length - 1)];
			setTimeout(connect, pause * (0.75 + Math.random() / 2));
		};
	}
	connect();
}
