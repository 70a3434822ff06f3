// The countdown of each grace period, and a new page when a server's state changes.
(function () {
  'use strict';

  // A notice is at least seconds long; the page learns of it within this time.
  var POLL_MILLISECONDS = 5000;

  function countdown() {
    document.querySelectorAll('[data-ebbtide-deadline]').forEach(function (place) {
      var left = Math.ceil((Date.parse(place.dataset.ebbtideDeadline) - Date.now()) / 1000);
      if (!isNaN(left)) {
        place.textContent = left > 0 ? left + ' s' : gettext('now');
      }
    });
  }

  // No one looks, or a question to the user is open, which a new page would close.
  function busy() {
    return document.hidden || document.querySelector('.modal.in');
  }

  function look(place) {
    if (busy()) {
      return;
    }
    fetch(place.dataset.ebbtideWatch, { credentials: 'same-origin' }).then(function (answer) {
      return answer.ok ? answer.json() : {};
    }).then(function (answer) {
      if (answer.digest && answer.digest !== place.dataset.ebbtideDigest && !busy()) {
        window.location.reload();
      }
    }).catch(function () {
      // The next look asks again.
    });
  }

  document.addEventListener('DOMContentLoaded', function () {
    countdown();
    window.setInterval(countdown, 1000);
    var place = document.querySelector('[data-ebbtide-watch]');
    if (place) {
      window.setInterval(look, POLL_MILLISECONDS, place);
    }
  });
}());
