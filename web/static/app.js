// What a page does beyond what it does without JavaScript: each module adds one
// thing, and the page works without any of them.
import { follow } from "./live.js";
import { listen } from "./keys.js";
import { switchThemes } from "./theme.js";

switchThemes();
listen();
follow();
