import { render } from "preact";
import { App } from "./app";
import "./style.css";
import "./views.css";

const place = document.getElementById("app");
if (place !== null) render(<App />, place);
